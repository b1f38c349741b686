"""The playground in a real browser: its numbers are the kernel's."""

import numpy as np
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

import pser
from browser import colours, needs_chromium, requested, resize, settle, start_chromium

pytest.importorskip("jinja2", reason="the page needs the report extra")
from pser.analysis.playground.page import render_playground

pytestmark = needs_chromium
EPS = 1e-4


@pytest.fixture(scope="module")
def chromium():
    driver = start_chromium()
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("playground") / "page.html"
    path.write_text(render_playground(), encoding="utf-8")
    return path


@pytest.fixture
def browser(chromium, page_file):
    colours(chromium, "light")
    resize(chromium, 1200)
    chromium.get("about:blank")
    chromium.get(page_file.as_uri())
    settle(chromium)
    return chromium


class Kernel:
    """The same two memories, kept by the package."""

    def __init__(self, driver):
        self.driver = driver
        c = self.controls = driver.execute_script("return pserPlayground.controls")
        shared = {"alpha": c["alpha"], "eps": EPS}
        rules = {
            "PER": pser.PER(**shared),
            "PSER": pser.PSER(
                **shared,
                rho=c["rho"],
                eta=c["eta"],
                window=c["window"],
                decay="add" if c["add"] else "max",
            ),
        }
        self.indices = {kind: pser.PriorityIndex(64, rule, seed=0) for kind, rule in rules.items()}
        for index in self.indices.values():
            for step in range(c["steps"]):
                index.append([step == 0], td_error=None if c["initial"] == "max" else [c["quiet"]])

    def update(self, steps, error, kinds=("PER", "PSER")):
        for kind in kinds:
            self.indices[kind].update(np.array(steps), np.full(len(steps), error))

    def compare(self):
        shown = self.driver.execute_script("return pserPlayground.read()")
        for kind, index in self.indices.items():
            ids = np.arange(index.next_id)
            np.testing.assert_allclose(shown[kind]["priority"], index.priority(ids), rtol=1e-12, atol=0)
            np.testing.assert_allclose(shown[kind]["chance"], index.probabilities(ids), rtol=1e-12, atol=0)
            assert shown[kind]["replays"] == index.columns().replays.tolist()
            assert shown[kind]["largest"] == pytest.approx(index.max_priority, rel=1e-12)


def click_step(driver, canvas, step):
    """A real click on a bar."""
    element = driver.find_element(By.ID, canvas)
    driver.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
    steps = driver.execute_script("return pserPlayground.controls.steps")
    width, left = element.size["width"], 44
    x = left + (step + 0.5) / steps * (width - left - 6) - width / 2
    ActionChains(driver).move_to_element_with_offset(element, x, 0).click().perform()
    settle(driver)


def set_slider(driver, name, value):
    driver.execute_script(
        "const e = document.getElementById(arguments[0]); e.value = arguments[1]; e.dispatchEvent(new Event('input'));",
        name,
        value,
    )


def choose_radio(driver, name, value):
    driver.find_element(By.CSS_SELECTOR, f"input[name={name}][value={value}]").click()


def test_page_opens_without_console_message_or_request(chromium, page_file):
    chromium.get_log("browser")
    chromium.get_log("performance")
    chromium.get("about:blank")
    chromium.get(page_file.as_uri())
    settle(chromium)
    assert chromium.get_log("browser") == []
    assert set(requested(chromium)) - {"data:,", "about:blank"} == {page_file.as_uri()}


def test_a_new_episode_holds_what_the_kernel_holds(browser):
    Kernel(browser).compare()
    choose_radio(browser, "initial", "max")
    Kernel(browser).compare()
    assert browser.execute_script("return pserPlayground.read().PSER.priority")[:2] == [1, 1]


def test_clicks_surprise_and_replay_as_the_kernel_does(browser):
    kernel = Kernel(browser)
    click_step(browser, "pser", 18)
    kernel.update([18], 1.0)
    kernel.compare()
    choose_radio(browser, "click", "quiet")
    for step in (17, 15, 18):
        click_step(browser, "per", step)
        kernel.update([step], 0.02)
        kernel.compare()
    choose_radio(browser, "click", "surprise")
    set_slider(browser, "surprise", 2.5)
    click_step(browser, "pser", 3)
    kernel.update([3], 2.5)
    kernel.compare()
    assert "Step 3 was replayed and found |δ| = 2.5" in browser.find_element(By.ID, "told").text


def test_any_settings_and_clicks_give_the_kernels_numbers(browser):
    rng = np.random.default_rng(0)
    for _ in range(25):
        window = int(rng.integers(0, 24))
        settings = {
            "rho": round(float(rng.uniform(0.05, 0.95)), 2),
            "eta": float(rng.choice([0.0, 0.35, 0.7, 1.0])),
            "alpha": float(rng.choice([0.0, 0.3, 0.5, 0.6, 1.0])),
            "window": window,
            "derived": False,
            "add": bool(rng.random() < 0.5),
            "initial": str(rng.choice(["td", "max"])),
            "steps": int(rng.integers(4, 41)),
            "quiet": float(rng.choice([0.0, 0.02, 0.3])),
        }
        browser.execute_script("pserPlayground.set(arguments[0])", settings)
        kernel = Kernel(browser)
        kernel.compare()
        for _ in range(8):
            if rng.random() < 0.3:
                drawn = browser.execute_script("return pserPlayground.drawBatch(6)")
                for kind in ("PER", "PSER"):
                    kernel.update(drawn[kind], settings["quiet"], (kind,))
            else:
                step, error = int(rng.integers(0, settings["steps"])), float(rng.exponential())
                browser.execute_script("pserPlayground.replay(arguments[0], arguments[1])", step, error)
                kernel.update([step], error)
        kernel.compare()


def test_the_window_follows_rho_unless_it_is_set(browser):
    for rho, window in ((0.4, 5), (0.65, 10), (0.8, 20)):
        set_slider(browser, "rho", rho)
        assert browser.execute_script("return pserPlayground.controls.window") == window
        assert browser.find_element(By.ID, "window-value").text == str(window)
    browser.find_element(By.ID, "derived").click()
    set_slider(browser, "window", 3)
    set_slider(browser, "rho", 0.4)
    assert browser.execute_script("return pserPlayground.controls.window") == 3
    kernel = Kernel(browser)
    browser.execute_script("pserPlayground.begin()")
    click_step(browser, "pser", 10)
    kernel.update([10], 1.0)
    kernel.compare()


def finished(driver, text):
    WebDriverWait(driver, 20).until(lambda d: text in d.find_element(By.ID, "told").text)


def test_figure_4_keeps_the_priority_of_step_7(browser):
    browser.find_element(By.CSS_SELECTOR, "[data-preset=figure4]").click()
    finished(browser, "Figure 4 of the paper")
    kernel = Kernel(browser)
    kernel.update([7], 1.0)
    kernel.update([13], 1.0)
    kernel.compare()
    priority = browser.execute_script("return pserPlayground.read().PSER.priority")
    assert priority[7] == 1.0 + EPS
    assert priority[8] == pytest.approx(0.65**5 * (1.0 + EPS))


def test_without_eta_a_quiet_replay_takes_away_what_decay_gave(browser):
    chances = {}
    for name, text in (("collapse", "Priority collapse"), ("kept", "keeps 0.7")):
        browser.find_element(By.CSS_SELECTOR, f"[data-preset={name}]").click()
        finished(browser, text)
        kernel = Kernel(browser)
        for step, error in ((18, 1.0), *((step, 0.02) for step in (17, 16, 15, 14, 13))):
            kernel.update([step], error)
        kernel.compare()
        chances[name] = browser.execute_script("return pserPlayground.read().PSER.priority[17]")
    assert chances["collapse"] == pytest.approx(0.02 + EPS)
    assert chances["kept"] == pytest.approx(0.7 * 0.65 * (1 + EPS))


def test_the_add_preset_ends_as_the_kernel_does(browser):
    browser.find_element(By.CSS_SELECTOR, "[data-preset=add]").click()
    finished(browser, "up to the largest priority")
    kernel = Kernel(browser)
    for step, error in ((18, 1.0), (15, 0.5), (18, 1.0)):
        kernel.update([step], error)
    kernel.compare()


def test_the_keyboard_surprises_a_step_as_well(browser):
    canvas = browser.find_element(By.ID, "pser")
    canvas.send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.ENTER)
    assert browser.execute_script("return pserPlayground.read().PSER.replays")[21] == 1
    assert "PSER, step 21" in browser.find_element(By.ID, "hover").text


def test_bars_flow_back_and_come_to_rest(browser):
    picture = "return document.getElementById('pser').toDataURL()"
    settle(browser)
    before = browser.execute_script(picture)
    click_step(browser, "per", 18)
    WebDriverWait(browser, 20).until(lambda d: d.execute_script("return pserPlayground.idle()"))
    settle(browser)
    assert browser.execute_script(picture) != before


def test_page_follows_the_colours_of_the_system_and_fits_a_phone(chromium, page_file):
    background = "return getComputedStyle(document.body).backgroundColor"
    colours(chromium, "dark")
    resize(chromium, 390)
    chromium.get("about:blank")
    chromium.get(page_file.as_uri())
    settle(chromium)
    dark = chromium.execute_script(background)
    colours(chromium, "light")
    assert chromium.execute_script(background) != dark
    assert chromium.execute_script("return document.documentElement.scrollWidth") <= 390
