// ServedMethod: one method of a generated service, as the registry calls it.
#pragma once

#include <google/protobuf/service.h>

#include "protobuf/schema.hpp"
#include "wirecall/call.hpp"

namespace wirecall::protobuf {

struct ServedMethod {
  ServedMethod(google::protobuf::Service& of, const google::protobuf::MethodDescriptor& called, bool blocks)
      : service(of), method(called), blocking(blocks), types(called) {}

  /// A detail::Invoke of a ServedMethod.
  static void invoke(void* callable, Call& call);

  google::protobuf::Service& service;
  const google::protobuf::MethodDescriptor& method;
  const bool blocking;
  const detail::MethodTypes types;
};

}  // namespace wirecall::protobuf
