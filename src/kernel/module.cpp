// The Python module pser._kernel.

#include <nanobind/nanobind.h>

#include "bindings.hpp"
#include "index.hpp"
#include "views.hpp"

namespace nb = nanobind;
using namespace pser;

NB_MODULE(_kernel, m) {
  m.doc() = "Compiled rules of the replay memory, and the loops of the learners that Python is too slow for.";
  nb::set_leak_warnings(false);
  NumpyTypes::get();  // imports NumPy: now, while no other thread can wait for it
  static nb::object error_type = nb::module_::import_("pser.errors").attr("PserError");
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& e) {
      PyErr_SetString(error_type.ptr(), e.what());
    }
  });

  m.def("has_avx2", &have_avx2);
  m.attr("BLOCK_BYTES") = sizeof(Block);
  m.attr("FAN_OUT") = kFan;
  m.attr("COMPILER") = __VERSION__;
#if defined(__SANITIZE_ADDRESS__)
  m.attr("SANITIZER") = "address";
#elif defined(__SANITIZE_THREAD__)
  m.attr("SANITIZER") = "thread";
#else
  m.attr("SANITIZER") = "";
#endif

  bind_index(m);
  bind_store(m);
  bind_intake(m);
  bind_tabular(m);
  bind_rmsprop(m);
  bind_planes(m);
  bind_noise(m);
  bind_huber(m);
}
