// See method_packing.hpp. Values go by way of MessagePack, which has all that Python sends.
#include "method_packing.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>

#include "encode.hpp"
#include "values.hpp"
#include "wirecall/packed_method.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::python {
namespace nb = nanobind;
namespace {

std::span<const std::byte> bytes_of(const nb::bytes& bytes) {
  return {static_cast<const std::byte*>(bytes.data()), bytes.size()};
}

Value value_of(std::span<const std::byte> msgpack) {
  auto value = from_msgpack<Value>(msgpack);
  if (!value) throw LocalError{std::move(value.error())};
  return *std::move(value);
}

/// `description`: the method's, as rpc.discover tells it, in MessagePack. None where it takes no packed params.
/// ValueError where its layouts are none.
std::optional<PackedMethod> method_packing(const nb::bytes& description) {
  return PackedMethod::from_description(value_of(bytes_of(description)));
}

/// The packed params as bytes.
nb::bytes pack(const PackedMethod& method, nb::handle args, nb::handle kwargs) {
  Value params;
  if (has_params(args, kwargs)) {
    Buffer text;
    const std::unique_ptr<Writer> writer = msgpack_codec().writer();
    writer->reset(text);
    write_params(*writer, args, kwargs);
    params = value_of(std::as_bytes(std::span{text.view()}));
  }
  const auto packed = method.pack(params);
  if (!packed) throw packed.error();
  const Extension extension = packed->at(0).as_extension();
  return nb::bytes{extension.data.data(), extension.data.size()};
}

/// The result that these bytes are.
nb::object unpack(const PackedMethod& method, const nb::bytes& packed) {
  const std::span<const std::byte> bytes = bytes_of(packed);
  const auto value = method.unpack(Value{Extension{kPackedExtension, {bytes.begin(), bytes.end()}}});
  if (!value) throw LocalError{value.error()};
  const std::vector<std::byte> text = to_msgpack(*value);
  const std::unique_ptr<Reader> reader = msgpack_codec().reader();
  reader->reset({reinterpret_cast<const char*>(text.data()), text.size()});
  PyObject* const object = decode_any(*reader);
  if (object != nullptr) return nb::steal(object);
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  throw LocalError{decode_error(*reader)};
}

}  // namespace

void add_method_packing(nb::module_& module) {
  nb::class_<PackedMethod>(module, "MethodPacking")
      .def_prop_ro("layout", &PackedMethod::params_layout)
      .def("pack", &pack)
      .def("unpack", &unpack);
  module.def("method_packing", &method_packing);
}

}  // namespace wirecall::python
