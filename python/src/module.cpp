// The native module wirecall._native: what the Python files of the package are made of. Not for users.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "array_memory.hpp"
#include "client.hpp"
#include "client_input.hpp"
#include "command.hpp"
#include "context.hpp"
#include "encode.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "handler_input.hpp"
#include "message/error_description.hpp"
#include "method_packing.hpp"
#include "server.hpp"
#include "shape.hpp"
#include "streams.hpp"
#include "values.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/client.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::python {
namespace nb = nanobind;

static const Codec& codec_named(std::string_view name) {
  for (const Codec* const codec : {&json_codec(), &msgpack_codec(), &cbor_codec()}) {
    if (codec->name() == name) return *codec;
  }
  throw nb::value_error("no encoding of that name");
}

static nb::bytes dumps(nb::handle value, const std::string& encoding) {
  std::string where;
  const std::optional<Buffer> text = encoded(codec_named(encoding), value.ptr(), where);
  if (!text) throw nb::type_error(where.c_str());
  return nb::bytes{text->data(), text->size()};
}

static std::string text_of(const DecodeFailure& failure) {
  std::string at;
  for (auto step = failure.path.rbegin(); step != failure.path.rend(); ++step) {
    if (!at.empty()) at += '.';
    const auto* const name = std::get_if<std::string>(&*step);
    at += name != nullptr ? *name : std::to_string(std::get<std::size_t>(*step));
  }
  return (at.empty() ? "" : "at " + at + ": ") + "expected " + failure.expected + ", got " + failure.got;
}

static nb::object loads(nb::bytes text, const Shape& shape, const std::string& encoding) {
  const Codec& codec = codec_named(encoding);
  Buffer padded{std::string_view{text.c_str(), text.size()}};
  const Scan scan = codec.scan(padded.padded(), 512);
  if (scan.status != ScanStatus::complete) throw nb::value_error(("not " + encoding).c_str());
  const std::unique_ptr<Reader> reader = codec.reader();
  reader->reset(padded.view().substr(0, scan.offset));
  PyObject* const value = shape.decode(*reader);
  if (value == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
  if (value == nullptr) throw nb::value_error(reader->failed() ? text_of(reader->failure()).c_str() : "cannot be read");
  return nb::steal(value);
}

static int traverse_shape(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<Shape>(self)->traverse(visit, arg) : 0;
}

static int clear_shape(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<Shape>(self)->clear();
  return 0;
}

static PyType_Slot shape_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_shape)},
                                    {Py_tp_clear, reinterpret_cast<void*>(&clear_shape)},
                                    {0, nullptr}};

NB_MODULE(_native, module) {
  nb::set_leak_warnings(false);
  nb::register_exception_translator([](const std::exception_ptr& failure, void*) {
    try {
      std::rethrow_exception(failure);
    } catch (const ConnectionError& error) {
      set_exception(error, detail::ErrorClass::connection_error);
    } catch (const LocalError& error) {
      set_exception(error, detail::ErrorClass::local_error);
    } catch (const Error& error) {
      set_exception(error);
    }
  });
  nb::class_<Shape>(module, "Shape", nb::type_slots(shape_slots), nb::is_weak_referenceable())
      .def(
          "__init__",
          [](Shape* self, int kind, const std::string& name, nb::object type) {
            new (self) Shape(static_cast<ShapeKind>(kind), name, std::move(type));
          },
          nb::arg("kind"), nb::arg("name"), nb::arg("type").none())
      .def("set_parts", &Shape::set_parts)
      .def("set_fields", &Shape::set_fields)
      .def("set_format", &Shape::set_format)
      .def("set_names", &Shape::set_names)
      .def("set_docs", &Shape::set_docs)
      .def("set_result", &Shape::set_result, nb::arg("type").none(), nb::arg("check").none())
      .def("set_definitions", &Shape::set_definitions)
      .def_prop_ro("schema", [](const Shape& shape) { return json_schema(shape.info()); })
      .def("__repr__", [](const Shape& shape) { return "<Shape: " + describe(shape.info()) + ">"; });
  module.def("dumps", &dumps, nb::arg("value").none(), nb::arg("encoding").sig("\"json\"") = "json");
  module.def("loads", &loads, nb::arg("text"), nb::arg("shape"), nb::arg("encoding").sig("\"json\"") = "json");
  module.def("set_planner", [](nb::handle function) { set_planner(function.ptr()); });
  module.def("set_error_functions",
             [](nb::handle make, nb::handle explain) { set_error_functions(make.ptr(), explain.ptr()); });
  module.def("set_extension_reader", [](nb::handle function) { set_extension_reader(function.ptr()); });
  module.def("error_description", &message::error_description, nb::arg("message"), nb::arg("data"));
  module.def("end_waits", &end_waits);
  module.def("end_threads", &end_threads);
  add_context(module);
  add_feed(module);
  add_handler_input(module);
  add_server(module);
  add_command(module);
  add_client(module);
  add_client_input(module);
  add_method_packing(module);
  add_array_memory(module);
}

}  // namespace wirecall::python
