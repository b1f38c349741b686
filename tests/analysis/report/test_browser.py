"""The page in a real browser: Chromium opens it from a file, without a network."""

import csv

import pytest

from analysis.synthetic import Synthetic, write_run, write_sweep
from pser.analysis.report.build import ReportSettings, build_report

pytest.importorskip("jinja2", reason="the page needs the report extra")
pytest.importorskip("selenium", reason="the browser test needs selenium")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

from browser import colours, needs_chromium, requested, resize, settle, start_chromium

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    from pser.analysis.report.html import render_html

    root = tmp_path_factory.mktemp("browser")
    write_sweep(root / "runs", envs=("atari:Pong", "minatar:breakout"), seeds=3)
    path = root / "report.html"
    path.write_text(
        render_html(build_report([root / "runs"], ReportSettings(resamples=200))), encoding="utf-8"
    )
    return path


@pytest.fixture(scope="module")
def chromium():
    driver = start_chromium()
    yield driver
    driver.quit()


@pytest.fixture
def browser(chromium, page_file):
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    colours(chromium, "light")
    chromium.set_window_size(1200, 900)
    chromium.get(page_file.as_uri())
    chromium.execute_script("document.getElementById('curves').scrollIntoView({behavior: 'instant'})")
    # The charts draw themselves after the page has loaded: on a busy machine that takes a while.
    drawn = (By.CSS_SELECTOR, "#curve-charts .u-legend th[tabindex]")
    WebDriverWait(chromium, 30).until(lambda driver: driver.find_elements(*drawn))
    chromium.execute_script("window.scrollTo({top: 0, behavior: 'instant'})")
    return chromium


def background(driver):
    return driver.execute_script("return getComputedStyle(document.body).backgroundColor")


def coloured_pixels(driver, chart):
    """Pixels of the chart's canvas that are neither transparent nor grey: lines and bands."""
    return driver.execute_script(
        """const c = arguments[0].querySelector("canvas");
        const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
        let n = 0;
        for (let i = 0; i < d.length; i += 4)
          if (d[i + 3] && Math.max(d[i], d[i + 1], d[i + 2]) - Math.min(d[i], d[i + 1], d[i + 2]) > 60) n++;
        return n;""",
        chart,
    )


def show(driver, css):
    """Scroll there and wait: only charts near the screen are drawn."""
    driver.execute_script(
        "document.querySelector(arguments[0]).scrollIntoView({block: 'center', behavior: 'instant'})", css
    )
    WebDriverWait(driver, 30).until(lambda d: d.find_elements(By.CSS_SELECTOR, f"{css} canvas"))
    settle(driver)


def first_column(driver, table):
    return [
        [cell.text for cell in row.find_elements(By.TAG_NAME, "td")]
        for row in driver.find_elements(By.CSS_SELECTOR, f"#{table} tbody tr")
    ]


def test_page_loads_without_console_message_or_network_request(chromium, page_file):
    chromium.get_log("browser")
    chromium.get_log("performance")
    chromium.get(page_file.as_uri())
    settle(chromium)
    assert chromium.get_log("browser") == []
    asked = requested(chromium)
    assert asked, "the log must hold at least the page itself"
    assert all(url == page_file.as_uri() or url.startswith("data:") for url in asked)


def test_every_section_has_its_charts_drawn(browser):
    counts = {"curve-charts": 2, "diagnostic-charts": 3}
    for parent, count in counts.items():
        show(browser, f"#{parent} .chart:last-child")
        charts = browser.find_elements(By.CSS_SELECTOR, f"#{parent} .chart")
        assert len(charts) == count
        for chart in charts:
            assert coloured_pixels(browser, chart) > 200
    for single in ("profile", "metric-chart"):
        show(browser, f"#{single}")
        assert coloured_pixels(browser, browser.find_element(By.ID, single)) > 200


def test_click_on_a_legend_name_hides_its_curve_and_a_second_shows_it(browser):
    settle(browser)
    chart = browser.find_element(By.CSS_SELECTOR, "#curve-charts .chart")
    row = next(r for r in chart.find_elements(By.CSS_SELECTOR, ".u-legend .u-series") if "PSER" in r.text)
    before = coloured_pixels(browser, chart)
    name = row.find_element(By.TAG_NAME, "th")
    name.click()
    settle(browser)
    assert "u-off" in row.get_attribute("class")
    hidden = coloured_pixels(browser, chart)
    assert hidden < 0.9 * before
    name.click()
    settle(browser)
    assert "u-off" not in row.get_attribute("class")
    assert coloured_pixels(browser, chart) > hidden


def test_legend_names_answer_to_the_keyboard(browser):
    name = browser.find_elements(By.CSS_SELECTOR, "#curve-charts .u-legend th[tabindex]")[0]
    row = name.find_element(By.XPATH, "..")
    browser.execute_script("arguments[0].focus()", name)
    ActionChains(browser).send_keys(" ").perform()
    assert "u-off" in row.get_attribute("class")


def test_chip_hides_a_label_in_all_charts(browser):
    chip = browser.find_element(By.CSS_SELECTOR, "#chips button")
    assert "PSER_MaxPrio_MAX" in chip.text
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false"
    names = browser.find_elements(By.CSS_SELECTOR, "#curve-charts .u-series.u-off:not(.band-edge)")
    assert [name.text.rstrip(":") for name in names] == ["PSER_MaxPrio_MAX"] * 2


def test_hover_shows_value_range_and_seeds(browser):
    settle(browser)
    over = browser.find_element(By.CSS_SELECTOR, "#curve-charts .u-over")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", over)
    ActionChains(browser).move_to_element(over).perform()
    settle(browser)
    texts = [
        e.text for e in browser.find_elements(By.CSS_SELECTOR, "#curve-charts .chart:first-child .u-value")
    ]
    assert any(" to " in text and "3 seeds" in text for text in texts)


def test_click_on_a_heading_sorts_and_a_second_turns_it_round(browser):
    head = browser.find_elements(By.CSS_SELECTOR, "#score-table th")[2]
    assert head.text.startswith("final")
    head.find_element(By.TAG_NAME, "button").click()
    rising = [float(row[2]) for row in first_column(browser, "score-table")]
    assert rising == sorted(rising)
    assert head.get_attribute("aria-sort") == "ascending"
    head.find_element(By.TAG_NAME, "button").click()
    assert [float(row[2]) for row in first_column(browser, "score-table")] == rising[::-1]


def test_missing_values_stay_last_however_a_table_is_sorted(browser):
    heads = browser.find_elements(By.CSS_SELECTOR, "#score-table th")
    (column,) = [i for i, head in enumerate(heads) if head.text.startswith("human")]
    for _ in range(2):
        heads[column].find_element(By.TAG_NAME, "button").click()
        values = [row[column] for row in first_column(browser, "score-table")]
        assert values[3:] == ["–"] * 3
        assert "–" not in values[:3]


def test_scale_choice_changes_the_axis(browser):
    chart = browser.find_element(By.CSS_SELECTOR, "#curve-charts .chart")
    drawn = "return arguments[0].querySelector('canvas').toDataURL()"
    settle(browser)
    before = browser.execute_script(drawn, chart)
    Select(browser.find_element(By.ID, "scale")).select_by_value("human")
    settle(browser)
    assert browser.execute_script(drawn, chart) != before


def test_colours_follow_the_system_until_the_reader_chooses(browser):
    light = background(browser)
    colours(browser, "dark")
    dark = background(browser)
    assert light != dark
    button = browser.find_element(By.ID, "theme")
    button.click()  # auto → light
    assert background(browser) == light
    button.click()  # light → dark
    colours(browser, "light")
    assert background(browser) == dark
    button.click()  # dark → auto
    assert background(browser) == light


def test_page_fits_a_phone_without_sideways_scrolling_and_shows_scores_first(browser):
    resize(browser, 390, 844)
    browser.refresh()
    for chart in ("#curve-charts .chart", "#profile", "#diagnostic-charts .chart", "#metric-chart"):
        show(browser, chart)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    widths = browser.execute_script("return [...document.querySelectorAll('canvas')].map(c => c.clientWidth)")
    assert len(widths) >= 4
    assert max(widths) <= 390
    tops = browser.execute_script(
        "return [...document.querySelectorAll('main > section')].map(s => [s.getBoundingClientRect().top, s.id])"
    )
    assert min(tops)[1] == "scores"


def choose(driver, select, value):
    Select(driver.find_element(By.ID, select)).select_by_value(value)
    settle(driver)


def picture(driver, css):
    return driver.execute_script("return document.querySelector(arguments[0]).toDataURL()", f"{css} canvas")


def test_each_seed_can_be_drawn_beside_its_mean(browser):
    show(browser, "#curve-charts .chart")
    seen = set()
    for spread in ("band", "seeds", "none"):
        choose(browser, "spread", spread)
        seen.add(picture(browser, "#curve-charts .chart"))
    assert len(seen) == 3


def test_training_returns_come_with_the_published_figures(browser):
    show(browser, "#curve-charts .chart:last-child")
    names = "#curve-charts .chart:last-child .u-legend th"
    assert not any("published" in e.text for e in browser.find_elements(By.CSS_SELECTOR, names))
    choose(browser, "returns", "training")
    shown = [e.text for e in browser.find_elements(By.CSS_SELECTOR, names)]
    assert sum("published" in name for name in shown) == 3


def downloaded(driver, folder, button):
    for old in folder.glob("*.csv"):
        old.unlink()
    driver.execute_script("arguments[0].click()", button)
    WebDriverWait(driver, 30).until(lambda _: any(path.stat().st_size for path in folder.glob("*.csv")))
    (path,) = folder.glob("*.csv")
    with path.open(encoding="utf-8", newline="") as file:
        return path.name, list(csv.reader(file))


def test_every_table_and_every_chart_can_be_taken_away_as_csv(browser, tmp_path):
    where = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", where)
    for chart in (
        "#curve-charts .chart:last-child",
        "#profile",
        "#diagnostic-charts .chart",
        "#metric-chart",
    ):
        show(browser, chart)
        name, rows = downloaded(browser, tmp_path, browser.find_element(By.CSS_SELECTOR, f"{chart} .csv"))
        assert len({len(row) for row in rows}) == 1
        assert rows[0][0] in ("frames", "min-max normalised score τ")
        assert any("PSER_MaxPrio_MAX" in head for head in rows[0])
    tables = browser.find_elements(By.CSS_SELECTOR, "table.sortable")
    assert len(tables) == len(browser.find_elements(By.CSS_SELECTOR, "[data-table]")) >= 4
    for table in tables:
        id_ = table.get_attribute("id")
        button = browser.find_element(By.CSS_SELECTOR, f"[data-table={id_}]")
        name, rows = downloaded(browser, tmp_path, button)
        assert name == f"{id_}.csv"
        assert len(rows) == 1 + len(table.find_elements(By.CSS_SELECTOR, "tbody tr"))


def test_csv_of_a_curve_has_mean_range_seeds_and_each_run(browser, tmp_path):
    browser.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    chart = "#curve-charts .chart:last-child"
    show(browser, chart)
    name, rows = downloaded(browser, tmp_path, browser.find_element(By.CSS_SELECTOR, f"{chart} .csv"))
    assert name == "minatar_breakout_evaluation_returns.csv"
    table = dict(zip(rows[0], rows[-1], strict=True))
    seeds = [float(table[f"minatar-breakout/pser-{seed}"]) for seed in range(3)]
    assert float(table["PSER_MaxPrio_MAX"]) == pytest.approx(sum(seeds) / 3, rel=1e-3)
    assert float(table["PSER_MaxPrio_MAX lowest"]) == pytest.approx(min(seeds), rel=1e-3)
    assert table["PSER_MaxPrio_MAX seeds"] == "3"


def test_details_of_a_run_appear_when_asked_for(browser):
    details = browser.find_element(By.CSS_SELECTOR, "#run-list details")
    assert "To repeat it" not in details.get_attribute("textContent")
    browser.execute_script("arguments[0].open = true", details)
    WebDriverWait(browser, 30).until(lambda _: "To repeat it" in details.get_attribute("textContent"))
    assert "pser train --from-run" in details.get_attribute("textContent")


def test_aggregates_are_a_picture_with_intervals(browser):
    panels = browser.find_elements(By.CSS_SELECTOR, "#intervals figure")
    assert panels[0].find_element(By.TAG_NAME, "figcaption").text == "IQM"
    for panel in panels:
        assert len(panel.find_elements(By.CLASS_NAME, "tick")) == 3
        assert len(panel.find_elements(By.CLASS_NAME, "bar")) == 3


@pytest.fixture(scope="module")
def many_file(tmp_path_factory):
    """Four games with two agents and two replays: sixteen panels if each has its own."""
    from pser.analysis.report.html import render_html

    root = tmp_path_factory.mktemp("many")
    for env in ("breakout", "asterix", "freeway", "space_invaders"):
        for label, replay in (("PSER_MaxPrio_MAX", "pser"), ("PER_MaxPrio", "per")):
            for agent in ("", "Rainbow_"):
                for seed in (0, 1):
                    run = Synthetic(env=f"minatar:{env}", replay=replay, label=agent + label, seed=seed)
                    write_run(root / "runs" / env / (agent + label) / f"seed-{seed}", run)
    path = root / "report.html"
    report = build_report([root / "runs"], ReportSettings(resamples=200))
    path.write_text(render_html(report), encoding="utf-8")
    return path


def panels(driver):
    return [e.text for e in driver.find_elements(By.CSS_SELECTOR, "#curve-charts figcaption span")]


def test_panels_can_be_split_by_agent_or_by_replay_and_many_become_small(browser, many_file):
    browser.get(many_file.as_uri())
    show(browser, "#curve-charts .chart:last-child")
    assert panels(browser) == [
        f"minatar:{name}" for name in ("asterix", "breakout", "freeway", "space_invaders")
    ]
    grid = browser.find_element(By.ID, "curve-charts")
    assert "small" not in grid.get_attribute("class")
    for by, names in (("agent", ["DQN", "Rainbow"]), ("strategy", ["PSER_MaxPrio_MAX", "PER_MaxPrio"])):
        choose(browser, "panels", by)
        show(browser, "#curve-charts .chart:last-child")
        assert "small" in grid.get_attribute("class")
        assert panels(browser)[:2] == [f"asterix: {name}" for name in names]
        assert len(panels(browser)) == 8
    assert "evaluation return (up) over frames" in browser.find_element(By.ID, "axes-note").text


def test_small_panel_can_be_enlarged_and_then_has_a_legend(browser, many_file):
    browser.get(many_file.as_uri())
    show(browser, "#curve-charts .chart")
    choose(browser, "panels", "agent")
    show(browser, "#curve-charts .chart")
    chart = browser.find_element(By.CSS_SELECTOR, "#curve-charts .chart")
    assert not chart.find_elements(By.CLASS_NAME, "u-legend")
    before = chart.size["width"]
    browser.execute_script("arguments[0].querySelector('.enlarge').click()", chart)
    settle(browser)
    assert chart.find_elements(By.CLASS_NAME, "u-legend")
    assert chart.size["width"] > 2 * before


def test_only_charts_near_the_screen_are_drawn(browser, many_file):
    browser.get(many_file.as_uri())
    settle(browser)
    assert not browser.find_elements(By.CSS_SELECTOR, "#metric-chart canvas")
    show(browser, "#metric-chart")
    assert browser.find_elements(By.CSS_SELECTOR, "#metric-chart canvas")


def test_game_without_evaluations_shows_its_training_returns_and_says_so(browser, tmp_path):
    from pser.analysis.report.html import render_html

    write_run(tmp_path / "runs" / "a", Synthetic(env="gym:A-v0"))
    write_run(tmp_path / "runs" / "b", Synthetic(env="gym:B-v0", evaluations=False))
    path = tmp_path / "report.html"
    path.write_text(
        render_html(build_report([tmp_path / "runs"], ReportSettings(resamples=100))), encoding="utf-8"
    )
    browser.get(path.as_uri())
    show(browser, "#curve-charts .chart:last-child")
    assert panels(browser) == ["gym:A-v0", "gym:B-v0 (training returns)"]
    choose(browser, "returns", "training")
    assert panels(browser) == ["gym:A-v0", "gym:B-v0"]
