"""The documentation site: it builds, asks nobody for anything, and can be searched from disk."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from browser import needs_chromium, requested, start_chromium

pytest.importorskip("mkdocs", reason="the site needs the docs group")
pytest.importorskip("mkdocstrings", reason="the site needs the docs group")
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_no_page_loads_anything_from_elsewhere(site):
    loads = re.compile(r"""<(?:script|link|img|iframe)[^>]*(?:src|href)=["']?(https?://[^"' >]+)""")
    found = {
        (page.name, address)
        for page in site.rglob("*.html")
        for address in loads.findall(page.read_text(encoding="utf-8"))
    }
    assert found == set()


@needs_chromium
def test_the_search_works_from_disk(site):
    driver = start_chromium()
    try:
        driver.set_window_size(1300, 900)
        driver.get((site / "how-to" / "saving.html").as_uri())
        driver.get_log("browser")
        driver.find_element(By.CSS_SELECTOR, ".md-search__input").send_keys("effective_sample_size")
        WebDriverWait(driver, 30).until(
            lambda d: "matching" in d.find_element(By.CSS_SELECTOR, ".md-search-result__meta").text
        )
        links = [
            e.get_attribute("href") for e in driver.find_elements(By.CSS_SELECTOR, ".md-search-result__link")
        ]
        assert any("metrics.html" in link for link in links)
        assert driver.get_log("browser") == []
        assert all(url.startswith(("file:", "data:")) for url in requested(driver))
    finally:
        driver.quit()


@needs_chromium
def test_the_playground_plays_within_its_page(site):
    driver = start_chromium()
    try:
        driver.get((site / "playground.html").as_uri())
        driver.switch_to.frame(driver.find_element(By.TAG_NAME, "iframe"))
        WebDriverWait(driver, 30).until(
            lambda d: "A surprise at step 18" in d.find_element(By.ID, "told").text
        )
        assert not driver.find_element(By.TAG_NAME, "header").is_displayed()
        background = "return getComputedStyle(document.body).backgroundColor"
        light, needed = driver.execute_script(background), "return document.body.scrollHeight"
        height = driver.execute_script(needed)
        driver.switch_to.default_content()
        frame = driver.find_element(By.TAG_NAME, "iframe")
        WebDriverWait(driver, 10).until(lambda _: height <= frame.size["height"] <= height + 40)
        driver.execute_script("document.body.dataset.mdColorScheme = 'slate'")
        driver.switch_to.frame(frame)
        WebDriverWait(driver, 10).until(lambda d: d.execute_script(background) != light)
    finally:
        driver.quit()
