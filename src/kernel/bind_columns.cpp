// The kinds of storage by name. A new kind: its class in a file of its own, and here how it is made and its line below.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <map>

#include "arrays.hpp"
#include "bindings.hpp"
#include "frames.hpp"
#include "records.hpp"
#include "views.hpp"

namespace nb = nanobind;

namespace pser {

namespace {

int64_t number(nb::dict d, const char* key) { return nb::cast<int64_t>(d[key]); }

std::unique_ptr<Column> array_column(nb::dict d, PinnedArrays& arrays, const Pending& pending, Index&) {
  FieldArrays a{};
  a.now = arrays.bytes(d["now"]);
  a.next = arrays.bytes(d["next"]);
  a.pending = arrays.bytes(d["pending"]);
  a.newest = arrays.bytes(d["newest"]);
  a.bytes = number(d, "bytes");
  return std::make_unique<ArrayColumn>(a, pending);
}

FrameArrays frame_arrays(nb::dict d, PinnedArrays& arrays) {
  FrameArrays a{};
  a.places = arrays.as<int32_t>(d["places"]);
  a.stream_stack = arrays.as<int64_t>(d["stream_stack"]);
  a.pending = arrays.as<int64_t>(d["pending"]);
  a.next_frame = arrays.as<int64_t>(d["next_frame"]);
  a.stack = number(d, "stack");
  a.lag = number(d, "lag");
  return a;
}

std::unique_ptr<Column> frame_column(nb::dict d, PinnedArrays& arrays, const Pending& pending, Index& index) {
  const PlainFrames frames(arrays.bytes(d["frames"]), number(d, "frame_bytes"), number(d, "ring"));
  return std::make_unique<FrameColumn<PlainFrames>>(frames, frame_arrays(d, arrays), pending, index);
}

std::unique_ptr<Column> compressed_column(nb::dict d, PinnedArrays& arrays, const Pending& pending, Index& index) {
  RecordArrays a{};
  a.chunks = arrays.bytes(d["chunks"]);
  a.last_frame = arrays.as<int64_t>(d["last_frame"]);
  a.used = arrays.as<int64_t>(d["used"]);
  a.filled = arrays.as<int64_t>(d["filled"]);
  a.at = arrays.as<int64_t>(d["at"]);
  a.keys = arrays.as<int64_t>(d["keys"]);
  a.frame_bytes = number(d, "frame_bytes");
  a.ring = number(d, "ring");
  a.streams = pending.streams;
  a.limit = number(d, "limit");
  a.chunk_bytes = number(d, "chunk_bytes");
  a.key_age = number(d, "key_age");
  a.reserve = number(d, "reserve");
  return std::make_unique<FrameColumn<Records>>(Records(a), frame_arrays(d, arrays), pending, index);
}

using Maker = std::unique_ptr<Column> (*)(nb::dict, PinnedArrays&, const Pending&, Index&);

const std::map<std::string, Maker> kKinds = {
    {"array", array_column},
    {"frames", frame_column},
    {"compressed", compressed_column},
};

}  // namespace

std::unique_ptr<Column> make_column(nb::dict description, PinnedArrays& arrays, const Pending& pending, Index& index) {
  return kKinds.at(nb::cast<std::string>(description["kind"]))(description, arrays, pending, index);
}

}  // namespace pser
