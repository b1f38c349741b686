from pser.analysis.report.numbers import Fixed


def test_every_number_of_a_column_has_the_same_decimals():
    fixed = Fixed.of([13.9412, 9.4, -0.004, None])
    assert [fixed(x) for x in (13.9412, 9.4, -0.004, None)] == ["13.94", "9.40", "0.00", "–"]


def test_decimals_follow_the_largest_number():
    assert Fixed.of([0.0123])(0.0123) == "0.0123"
    assert Fixed.of([0.0123, 0.5])(0.5) == "0.500"
    assert Fixed.of([12.0, 1234.5])(12.0) == "12.0"
    assert Fixed.of([123456.7])(123456.7) == "123,457"
    assert Fixed.of([0.0])(0.0) == "0.00"


def test_what_is_no_number_is_a_dash():
    assert Fixed(2)(float("nan")) == "–"
