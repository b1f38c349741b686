// One step as its caller gave it, taken without a conversion: NumPy arrays of just the right form and, for a single row, plain
// numbers. Anything else is left to Python, which converts it or says what is wrong with it.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "rules.hpp"
#include "views.hpp"

namespace pser {

namespace nb = nanobind;

// Other kinds of arrays are Python's business.
inline bool is_numpy(nb::handle value) { return NumpyTypes::get().is_array(value) || NumpyTypes::get().is_scalar(value); }

// What a field's values look like: the buffer protocol's letters of their dtype (empty: unknown to it), and their shape.
struct Form {
  std::string format;
  std::vector<int64_t> shape;

  bool is_int64() const { return format == "q" || (format == "l" && sizeof(long) == sizeof(int64_t)); }

  // (rows, *shape), or of a single row the shape alone.
  bool fits(const View& view, int64_t rows) const {
    const auto axes = static_cast<int>(shape.size());
    const int leading = view.axes() - axes;
    if (format.empty() || std::strcmp(view.format(), format.c_str()) != 0) return false;
    if (leading == 0 ? rows != 1 : (leading != 1 || view.length(0) != rows)) return false;
    for (int axis = 0; axis < axes; ++axis)
      if (view.length(leading + axis) != shape[static_cast<size_t>(axis)]) return false;
    return true;
  }
};

// The values of a field.
class GivenField {
 public:
  bool take(nb::handle value, const Form& form, int64_t rows) {
    return is_numpy(value) && view_.take(value) && form.fits(view_, rows);
  }
  const uint8_t* bytes() const { return view_.raw(); }

 private:
  View view_;
};

// An action: a field, or one whole number.
class GivenAction {
 public:
  bool take(nb::handle value, const Form& form, int64_t rows) {
    if (!PyLong_CheckExact(value.ptr())) return field_.take(value, form, rows) && (bytes_ = field_.bytes(), true);
    if (rows != 1 || !form.shape.empty() || !form.is_int64()) return false;
    int overflow = 0;
    number_ = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    bytes_ = reinterpret_cast<const uint8_t*>(&number_);
    return overflow == 0;
  }
  const uint8_t* bytes() const { return bytes_; }

 private:
  GivenField field_;
  int64_t number_ = 0;
  const uint8_t* bytes_ = nullptr;
};

// A real number for each row.
class GivenReals {
 public:
  bool take(nb::handle value, int64_t rows) {
    if (PyFloat_Check(value.ptr())) return one(PyFloat_AsDouble(value.ptr()), rows);
    if (PyLong_CheckExact(value.ptr())) {
      int overflow = 0;
      const long long whole = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
      return overflow == 0 && one(static_cast<double>(whole), rows);
    }
    if (!is_numpy(value) || !view_.take(value) || view_.count() != rows) return false;
    if (view_.is("d", 8)) return values_ = view_.as<double>(), true;
    if (!view_.is("f", 4)) return false;
    if (rows == 1) return one(view_.as<float>()[0], rows);
    wide_.assign(view_.as<float>(), view_.as<float>() + rows);
    return values_ = wide_.data(), true;
  }

  // p = |δ| + ε of each.
  void to_priorities(double eps, int64_t rows) {
    std::vector<double> priorities;
    for (int64_t r = 0; r < rows; ++r) priorities.push_back(fresh_priority(values_[r], eps));
    wide_.swap(priorities);
    values_ = wide_.data();
  }

  const double* values() const { return values_; }

 private:
  bool one(double value, int64_t rows) {
    number_ = value;
    values_ = &number_;
    return rows == 1;
  }
  View view_;
  std::vector<double> wide_;
  double number_ = 0.0;
  const double* values_ = nullptr;  // null if nothing was given
};

// A flag for each row.
class GivenFlags {
 public:
  bool take(nb::handle value, int64_t rows) {
    if (PyBool_Check(value.ptr())) {
      flag_ = value.ptr() == Py_True;
      values_ = &flag_;
      return rows == 1;
    }
    if (!is_numpy(value) || !view_.take(value) || view_.count() != rows || !view_.is("?", 1)) return false;
    values_ = view_.as<bool>();
    return true;
  }
  const bool* values() const { return values_; }

 private:
  View view_;
  bool flag_ = false;
  const bool* values_ = nullptr;
};

// The streams that the rows belong to, if they are named.
class GivenStreams {
 public:
  bool take(nb::handle value, int64_t streams) {
    rows_ = streams;
    if (value.is_none()) return true;
    if (!is_numpy(value) || !view_.take(value) || !view_.is("lq", 8) || view_.count() == 0) return false;
    rows_ = view_.count();
    values_ = view_.as<int64_t>();
    return true;
  }
  int64_t rows() const { return rows_; }
  const int64_t* values() const { return values_; }

 private:
  View view_;
  int64_t rows_ = 0;
  const int64_t* values_ = nullptr;  // null: row r is stream r
};

}  // namespace pser
