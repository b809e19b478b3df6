// PackedMethod: packed calls of a method that is known as rpc.discover describes it, for callers that do not have the
// function: scripts, gateways, the command.
//
//     const Value document = client.call<Value>("rpc.discover");
//     if (const auto mean = PackedMethod::find(document, "mean")) {
//       const auto params = mean->pack(Value::array({Value::array({1.0, 2.0})}));
//       const Value result = mean->unpack(client.call<Value>("mean", params->at(0))).value();
//     }
//
// Callers that have it use packed_call.hpp. What the calls look like is in docs/packed.md, "In messages".
// Thread: any; one may be used by several at once.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wirecall/error.hpp"
#include "wirecall/layout_packer.hpp"
#include "wirecall/value.hpp"

namespace wirecall {

class PackedMethod {
 public:
  /// Of an OpenRPC document, the method of that name; nothing where it is not there or takes no packed params. Throws
  /// std::invalid_argument where its layouts are none, or are of another number of parameters than the method has.
  [[nodiscard]] static std::optional<PackedMethod> find(const Value& document, std::string_view name);
  /// The same of the method's own description.
  [[nodiscard]] static std::optional<PackedMethod> from_description(const Value& method);
  /// Whether the document has a method of that name, packed or not.
  [[nodiscard]] static bool has_method(const Value& document, std::string_view name);

  /// The layout of the params, a tuple.
  [[nodiscard]] std::string_view params_layout() const noexcept { return params_.text(); }
  /// Packs params: an array, an object, or null for none. What is not given has its default, or is empty. Returns the
  /// params that go to the server, an array of one packed value. The error is -32602 with {"loc", "expected", "got"}.
  [[nodiscard]] std::expected<Value, Error> pack(const Value& params) const;
  /// What a result says; one that is not packed is returned as it is. The error is -32603, with why it does not fit.
  [[nodiscard]] std::expected<Value, Error> unpack(Value result) const;

 private:
  struct Parameter {
    std::string name;
    std::optional<Value> default_value;  ///< nothing: it has to be given
  };

  PackedMethod(LayoutPacker params, LayoutPacker result) : params_(std::move(params)), result_(std::move(result)) {}
  [[nodiscard]] Error at_parameter(const Error& error) const;

  LayoutPacker params_;
  LayoutPacker result_;
  std::vector<Parameter> parameters_;
};

}  // namespace wirecall
