// Reads what an OpenRPC document says of a method, and fills in what a caller leaves out.
#include "wirecall/packed_method.hpp"

#include <algorithm>
#include <stdexcept>

#include "codec/decode_failure.hpp"

namespace wirecall {

static std::string text_of(const Value* value) {
  return value != nullptr && value->is_string() ? value->as_string() : std::string{};
}

static std::unexpected<Error> refuse(std::string expected, std::string got, DecodeFailure::Step step) {
  return std::unexpected(codec::decode_error({std::move(expected), std::move(got), {std::move(step)}, {}}));
}

static const Value* description_in(const Value& document, std::string_view name) {
  const Value& methods = document["methods"];
  if (!methods.is_array()) return nullptr;
  const auto found =
      std::ranges::find_if(methods.as_array(), [name](const Value& one) { return text_of(one.find("name")) == name; });
  return found == methods.as_array().end() ? nullptr : &*found;
}

bool PackedMethod::has_method(const Value& document, std::string_view name) {
  return description_in(document, name) != nullptr;
}

std::optional<PackedMethod> PackedMethod::find(const Value& document, std::string_view name) {
  const Value* const description = description_in(document, name);
  return description == nullptr ? std::nullopt : from_description(*description);
}

std::optional<PackedMethod> PackedMethod::from_description(const Value& method) {
  const Value& layouts = method["result"]["x-packed"];
  if (!layouts.is_object()) return std::nullopt;
  PackedMethod packed{LayoutPacker{text_of(layouts.find("params"))}, LayoutPacker{text_of(layouts.find("result"))}};
  const Value& params = method["params"];
  const std::size_t count = params.is_array() ? params.size() : 0;
  if (packed.params_.tuple_size() != count)
    throw std::invalid_argument("the layout of the params is of another number of them than the method has");
  for (std::size_t i = 0; i < count; ++i) {
    const Value& param = params.at(i);
    Parameter parameter{text_of(param.find("name")), std::nullopt};
    // A default may be shown of a parameter that has to be given.
    const bool is_required = param["required"] == Value{true};
    if (const Value* const shown = param["schema"].find("default"); shown != nullptr && !is_required)
      parameter.default_value = *shown;
    else if (packed.params_.is_optional(i))
      parameter.default_value.emplace();
    packed.parameters_.push_back(std::move(parameter));
  }
  return packed;
}

std::expected<Value, Error> PackedMethod::pack(const Value& params) const {
  if (params.is_array() && params.size() > parameters_.size())
    return refuse("nothing", codec::shown(params.at(parameters_.size())), parameters_.size());
  if (params.is_object()) {
    for (const auto& [name, value] : params.as_object()) {
      if (std::ranges::find(parameters_, name, &Parameter::name) == parameters_.end())
        return refuse("nothing", codec::shown(value), name);
    }
  }
  Value::Array values;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    const Value* value = params.find(parameter.name);
    if (params.is_array() && i < params.size()) value = &params.at(i);
    if (value == nullptr && !parameter.default_value) return refuse("a value", "nothing", parameter.name);
    values.push_back(value != nullptr ? *value : *parameter.default_value);
  }
  auto packed = params_.pack(Value{std::move(values)});
  if (packed) return Value::array({Extension{kPackedExtension, *std::move(packed)}});
  return std::unexpected(at_parameter(packed.error()));
}

// The layout knows the parameters by their positions.
Error PackedMethod::at_parameter(const Error& error) const {
  Value data = Value::parse(error.data()).value_or(Value{});
  Value* const loc = data.find("loc");
  if (loc == nullptr || loc->size() == 0) return error;
  Value& first = loc->as_array().front();
  first = parameters_[first.as_uint()].name;
  return Error::with_data(ErrorCode::invalid_params, data.dump());
}

std::expected<Value, Error> PackedMethod::unpack(Value result) const {
  Extension packed;
  try {
    packed = result.as_extension();
  } catch (const Error&) {
    return result;
  }
  if (packed.type != kPackedExtension) return result;
  auto value = result_.unpack(packed.data);
  if (value) return value;
  return std::unexpected(Error::with_data(ErrorCode::internal_error, value.error().data()));
}

}  // namespace wirecall
