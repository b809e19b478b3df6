// JSON Schemas of message types, and the signatures of methods made of them.
#pragma once

#include <deque>
#include <google/protobuf/descriptor.h>
#include <string>
#include <vector>

#include "wirecall/detail/signature.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/schema.hpp"

namespace wirecall::protobuf {

/// A schema and those that it refers to, as TypeInfo::definitions wants them: its own first.
using Definitions = std::vector<SchemaDefinition>;

namespace detail {

/// What documents show of one method. Its spans point into itself.
struct MethodTypes {
  /// `streamed`: the request is what its caller streams, and no argument.
  explicit MethodTypes(const google::protobuf::MethodDescriptor& method, bool streamed = false);
  MethodTypes(MethodTypes&&) = delete;

  const google::protobuf::MethodDescriptor& method;
  std::deque<std::string> texts;  // of definitions
  std::deque<Definitions> definitions;
  std::deque<TypeInfo> infos;
  std::vector<wirecall::detail::ArgumentType> arguments;
  std::vector<std::string> names;  // of the arguments
  wirecall::detail::Signature signature;

 private:
  const TypeInfo& define(Definitions own);
  void add_argument(std::string name, const TypeInfo& type, bool optional);
};

}  // namespace detail
}  // namespace wirecall::protobuf
