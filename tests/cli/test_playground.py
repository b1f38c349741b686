"""`pser playground`: a file, or a page served to this machine alone."""

import threading
import urllib.error
import urllib.request

import pytest

from pser.cli import main
from pser.cli.playground import HOST, make_server


def test_the_page_is_written_and_named(tmp_path, capsys):
    out = tmp_path / "a" / "page.html"
    assert main(["playground", "--out", str(out)]) == 0
    assert f"written: {out}" in capsys.readouterr().out
    assert "default-src 'none'" in out.read_text(encoding="utf-8")


def test_the_page_is_served_to_this_machine_and_nothing_else_is():
    with make_server("<p>ρ</p>", 0) as server:
        assert server.server_address[0] == HOST == "127.0.0.1"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"http://{HOST}:{server.server_port}"
            with urllib.request.urlopen(f"{address}/") as answer:
                assert answer.read().decode() == "<p>ρ</p>"
            with pytest.raises(urllib.error.HTTPError, match="404") as refused:
                urllib.request.urlopen(f"{address}/etc/passwd")
            refused.value.close()
        finally:
            server.shutdown()
            thread.join()


def test_a_port_in_use_is_one_clear_line(capsys):
    with make_server("", 0) as server:
        assert main(["playground", "--serve", "--port", str(server.server_port)]) == 2
    error = capsys.readouterr().err
    assert "choose another --port" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(("flags", "message"), [(["--port", "70000"], "a port lies from 0 to 65535")])
def test_bad_input_is_one_clear_line(flags, message, capsys):
    assert main(["playground", *flags]) == 2
    assert message in capsys.readouterr().err


def test_a_folder_is_no_page(tmp_path, capsys):
    assert main(["playground", "--out", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err
