"""The page of `pser inspect` in a real browser: what it shows is what the memory holds."""

import numpy as np
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

import pser
from analysis.inspect.memories import played
from browser import colours, needs_chromium, requested, resize, settle, start_chromium
from pser.memory.index import SOURCES
from pser.records.inspection import first_steps, inspect_memory
from pser.records.pictures import unpack

pytest.importorskip("jinja2", reason="the page needs the report extra")
from pser.analysis.inspect.page import render_page
from pser.analysis.inspect.sources import Source

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def chromium():
    driver = start_chromium()
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def moments():
    """(memory, inspection) after 60, 105 and 150 steps of the same game."""
    found = []
    for steps in (60, 105, 150):
        memory, drawn = played(steps=steps)
        found.append((memory, inspect_memory(memory, frames=steps, drawn=drawn)))
    return found


def write_page(path, inspections):
    manifest = {"settings": {"replay": {"initial": "max", "priority_signal": "td"}}}
    manifest |= {"env": "minatar:breakout", "label": "PSER_MaxPrio_MAX", "seed": 0}
    path.write_text(render_page(Source(path, inspections, manifest, []), "A memory"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def page_file(moments, tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("inspect") / "page.html", [m for _, m in moments])


def opened(driver, path, width=1200):
    colours(driver, "light")
    resize(driver, width)
    driver.get(path.as_uri())
    WebDriverWait(driver, 30).until(
        lambda d: d.execute_script("return document.documentElement.dataset.ready") == "yes"
    )
    facts(driver)
    settle(driver)
    return driver


@pytest.fixture
def browser(chromium, page_file):
    return opened(chromium, page_file)


def facts(driver):
    """The table beside the picture, once it is that of the chosen step."""
    WebDriverWait(driver, 20).until(
        lambda d: d.execute_script("return pserInspect.shown() === pserInspect.state.id")
    )
    return driver.execute_script(
        """const text = (tag) => [...document.querySelectorAll(`#step-facts ${tag}`)].map((e) => e.textContent);
        return Object.fromEntries(text("dt").map((name, k) => [name, text("dd")[k]]));"""
    )


def told(driver, element):
    WebDriverWait(driver, 20).until(lambda d: d.find_element(By.ID, element).text)
    return driver.find_element(By.ID, element).text


def choose(driver, transition):
    driver.execute_script("pserInspect.choose(arguments[0])", transition)


def inked(driver, canvas):
    return driver.execute_script(
        """const c = document.getElementById(arguments[0]);
        const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
        let n = 0;
        for (let i = 3; i < d.length; i += 4) if (d[i]) n++;
        return n;""",
        canvas,
    )


def test_page_opens_without_console_message_or_request(chromium, page_file):
    chromium.get_log("browser")
    chromium.get_log("performance")
    opened(chromium, page_file)
    assert chromium.get_log("browser") == []
    assert set(requested(chromium)) - {"data:,"} == {page_file.as_uri()}


def test_every_picture_of_the_memory_is_drawn(browser):
    for canvas in ("map", "mass", "replays", "episodes", "steps", "picture"):
        assert inked(browser, canvas) >= 100


def test_the_page_reads_the_numbers_that_the_memory_holds(browser, moments):
    for number, (memory, inspection) in enumerate(moments):
        page = browser.execute_script(
            """const m = pserInspect.moments[arguments[0]], c = m.columns, list = (x) => Array.from(x);
            return {priority: list(c.priority), own: list(c.own), raised: list(c.raised), replays: list(c.replays),
              reward: list(c.reward), mass: list(m.mass), shares: m.shares, facts: m.facts, total: m.total,
              first: list(m.episodeOf).map((e) => m.episodes[e].first), draws: list(m.draws), oldest: m.oldest};""",
            number,
        )
        held, stats = memory.columns(), memory.stats()
        np.testing.assert_allclose(page["priority"], held["priority"], rtol=2e-4)
        np.testing.assert_allclose(page["mass"], held["mass"], rtol=1e-4)
        assert page["replays"] == held["replays"].tolist()
        np.testing.assert_allclose(page["reward"], held["reward"], rtol=1e-6)
        assert page["first"] == first_steps(held["back"]).tolist()
        own = np.minimum(held["own_mass"].astype(float), held["mass"]) ** 2  # α = 0.5
        np.testing.assert_allclose(page["own"], own, rtol=3e-4)
        assert page["oldest"] == memory.index.oldest_id
        assert page["total"] == pytest.approx(stats["total_mass"], rel=1e-4)
        assert page["facts"]["effective"] == pytest.approx(stats["effective_sample_size"], rel=1e-3)
        wanted = [stats[f"mass_from_{name}"] for name in SOURCES]
        assert page["shares"] == pytest.approx(wanted, abs=1e-4)
        assert min(wanted) > 0.0
        assert page["facts"]["decayed"] == page["shares"][3]
        assert page["facts"]["never"] == pytest.approx(stats["never_replayed_share"])
        drawn = inspection.drawn_ids - memory.index.oldest_id
        assert page["draws"] == np.bincount(drawn[drawn >= 0], minlength=len(memory)).tolist()


def test_a_step_shows_its_facts_and_its_observation(browser, moments):
    memory, inspection = moments[-1]
    kept = inspection.pictures.episodes[0]
    transition = int(kept.ids[-1])
    choose(browser, transition)
    shown = facts(browser)
    wanted = memory[transition]
    assert shown["transition"] == f"{transition:,}"
    assert float(shown["reward"]) == pytest.approx(float(wanted.reward), rel=5e-3)
    assert shown["action"] == str(int(wanted.action))
    chance = float(shown["chance of replay"].split("%")[0]) / 100
    assert chance == pytest.approx(float(wanted.probabilities), rel=6e-3)
    picture = browser.execute_script(
        """const c = document.getElementById("picture");
        return [c.width, c.height, Array.from(c.getContext("2d").getImageData(0, 0, c.width, c.height).data)];"""
    )
    board = unpack(kept.data, (10, 10), "board")[-1]
    pixels = np.array(picture[2]).reshape(10, 10, 4)[..., :3]
    assert picture[:2] == [10, 10]
    for value in np.unique(board):  # one colour a thing, and no two alike
        assert len(np.unique(pixels[board == value], axis=0)) == 1
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) == len(np.unique(board))


def test_a_td_error_is_shown_where_it_is_known_and_else_why_not(browser, moments):
    memory, inspection = moments[-1]
    last = inspection.drawn_ids[-1]
    newest = int(last[-1])
    error = np.abs(inspection.drawn_td[-1][last == newest]).max()
    choose(browser, newest)
    shown = facts(browser)["|δ|"]
    assert shown.endswith("(drawn by the last batch)")
    assert float(shown.split()[0]) == pytest.approx(error, rel=5e-3)
    columns = memory.columns()
    never = int(columns["ids"][columns["replays"] == 0][0])
    choose(browser, never)
    assert facts(browser)["|δ|"] == "never replayed"
    drawn = np.isin(columns["ids"], inspection.drawn_ids)
    kept, found = (
        int(columns["ids"][~drawn & (columns["source"] == SOURCES.index(name))][0])
        for name in ("retention", "td_error")
    )
    choose(browser, kept)
    assert facts(browser)["|δ|"].startswith("at most ")
    choose(browser, found)
    shown = facts(browser)["|δ|"]
    assert shown.endswith("(at its last replay)")
    assert float(shown.split()[0]) == pytest.approx(memory.priorities([found])[0] - 1e-4, rel=5e-3)


def test_the_slider_moves_through_the_moments_and_follows_the_chosen_transition(browser, moments):
    transition = 90
    choose(browser, transition)
    slider = browser.find_element(By.ID, "slider")
    slider.send_keys(Keys.ARROW_LEFT)
    settle(browser)
    assert "105 frames (2 of 3)" in browser.find_element(By.ID, "when").text
    assert browser.execute_script("return pserInspect.state.at") == transition - moments[1][0].index.oldest_id
    WebDriverWait(browser, 10).until(lambda d: d.find_elements(By.CSS_SELECTOR, "tr[aria-selected]"))
    choose(browser, 250)  # not yet added at the first moment
    slider.send_keys(Keys.ARROW_RIGHT)
    choose(browser, 250)
    slider.send_keys(Keys.HOME)
    settle(browser)
    assert not browser.find_element(By.ID, "steps-panel").is_displayed()
    WebDriverWait(browser, 10).until(
        lambda d: "not in memory at this moment" in d.find_element(By.ID, "nothing").text
    )


def test_a_click_on_the_map_opens_the_transition_below_it(browser):
    place = browser.execute_script(
        """const m = pserInspect.moments.at(-1), c = document.getElementById("map"), i = m.size - 40;
        return [i, pserInspect.map.x(m, i, c.clientWidth), pserInspect.map.y(m.columns.priority[i], c.clientHeight),
          c.clientWidth, c.clientHeight];"""
    )
    canvas = browser.find_element(By.ID, "map")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas)
    x, y = place[1] - place[3] / 2, place[2] - place[4] / 2
    ActionChains(browser).move_to_element_with_offset(canvas, x, y).click().perform()
    settle(browser)
    chosen = browser.execute_script("return pserInspect.state.at")
    assert abs(chosen - place[0]) <= 2  # a neighbour may lie nearer to the pixel that was hit
    assert "replayed" in browser.find_element(By.ID, "hover").text


def test_a_row_of_the_table_opens_its_episode_and_the_arrow_keys_walk_it(browser):
    Select(browser.find_element(By.ID, "order")).select_by_value("steps")
    row = browser.find_element(By.CSS_SELECTOR, "#episode-table tbody tr")
    steps = int(row.find_elements(By.TAG_NAME, "td")[1].text)
    row.click()
    WebDriverWait(browser, 10).until(
        lambda d: d.find_element(By.ID, "steps-summary").text.startswith(f"{steps} steps")
    )
    canvas = browser.find_element(By.ID, "steps")
    browser.execute_script(
        "pserInspect.choose(pserInspect.moments.at(-1).oldest + pserInspect.state.steps[0])"
    )
    canvas.send_keys(Keys.ARROW_RIGHT)
    WebDriverWait(browser, 10).until(lambda d: facts(d)["step"] == f"2 of {steps}")


def test_every_order_sorts_the_table(browser):
    order = Select(browser.find_element(By.ID, "order"))
    for value, column in (("share", 3), ("replays", 5), ("steps", 1), ("reward", 2), ("drawn", 6)):
        order.select_by_value(value)
        cells = browser.execute_script(
            """const rows = [...document.querySelectorAll("#episode-table tbody tr")];
            return rows.map((row) => row.cells[arguments[0]].textContent);""",
            column,
        )
        numbers = [float(cell.strip("%<").replace(",", "")) for cell in cells]
        assert numbers == sorted(numbers, reverse=True)


def test_colour_modes_draw_different_maps(browser):
    pictures = set()
    for mode in ("source", "replays", "drawn"):
        Select(browser.find_element(By.ID, "map-mode")).select_by_value(mode)
        settle(browser)
        pictures.add(browser.execute_script("return document.getElementById('map').toDataURL()"))
        assert browser.find_elements(By.CSS_SELECTOR, "#legend span")
    assert len(pictures) == 3


def test_page_follows_the_colours_of_the_system(browser):
    picture = (
        "return [getComputedStyle(document.body).backgroundColor, document.getElementById('map').toDataURL()]"
    )
    light = browser.execute_script(picture)
    colours(browser, "dark")
    settle(browser)
    dark = browser.execute_script(picture)
    assert light[0] != dark[0]
    assert light[1] != dark[1]


def test_page_fits_a_phone_without_sideways_scrolling(chromium, page_file):
    opened(chromium, page_file, width=390)
    assert chromium.execute_script("return document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("rule", [pser.PER(), pser.PER(variant="rank"), pser.Uniform()], ids=str)
def test_a_memory_alone_says_what_it_cannot_tell(chromium, tmp_path, rule):
    memory, _ = played(
        rule, spec=pser.Array((2,), np.float32), observe=lambda rng: rng.random((2, 2), np.float32)
    )
    path = tmp_path / "page.html"
    path.write_text(render_page(Source(path, [inspect_memory(memory)], None, []), "m"), encoding="utf-8")
    opened(chromium, path)
    assert chromium.get_log("browser") == []
    columns = memory.columns()
    place = int(np.flatnonzero(columns["replays"])[0])
    choose(chromium, int(columns["ids"][place]))
    shown = facts(chromium)
    assert shown["last batches"] == "not known"
    assert told(chromium, "batches").endswith("Train with --inspect-period-frames.")
    if isinstance(rule, pser.PER):
        assert float(shown["|δ|"].split()[0]) == pytest.approx(
            columns["priority"][place] - rule.eps, rel=5e-3
        )
        assert shown["|δ|"].endswith("(at its last replay)")
    else:
        assert shown["|δ|"] == "uniform replay keeps none"
    chance = float(shown["chance of replay"].split("%")[0]) / 100
    assert chance == pytest.approx(columns["mass"][place] / columns["mass"].sum(), rel=6e-3)
    vector = [e.text for e in chromium.find_elements(By.CSS_SELECTOR, "#vector li")]
    observation = memory[int(columns["ids"][place])].observation
    np.testing.assert_allclose([float(line.split(": ")[1]) for line in vector], observation, rtol=6e-3)


def test_a_checkpoint_says_that_other_moments_know_the_batches(chromium, moments, tmp_path):
    noted = moments[0][1]
    saved = inspect_memory(moments[-1][0], frames=150)
    opened(chromium, write_page(tmp_path / "page.html", [noted, saved]))
    assert told(chromium, "batches").endswith("The moments that were noted while training do.")


def test_an_empty_memory_opens_without_an_error(chromium, tmp_path):
    memory = pser.ReplayMemory(4, pser.Array((), np.float32))
    path = tmp_path / "page.html"
    path.write_text(render_page(Source(path, [inspect_memory(memory)], None, []), "m"), encoding="utf-8")
    chromium.get_log("browser")
    chromium.get(path.as_uri())
    settle(chromium)
    assert chromium.get_log("browser") == []
