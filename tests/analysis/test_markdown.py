from pser.analysis.markdown import escape, table


def test_table_has_a_rule_that_aligns_numbers():
    assert table(["a", "b"], [["x", "1"]], numeric=[1]) == "| a | b |\n| --- | ---: |\n| x | 1 |"


def test_bar_in_a_cell_does_not_end_it():
    assert table(["|δ|"], [[r"a \| b"]]).splitlines() == [r"| \|δ\| |", "| --- |", r"| a \| b |"]


def test_stars_and_angle_brackets_stay_what_they_are():
    assert escape("Q* of <b>") == r"Q\* of &lt;b>"
    assert escape("PSER_MaxPrio_MAX") == "PSER_MaxPrio_MAX"
    assert escape("_x_") == r"\_x\_"
