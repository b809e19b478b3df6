// OpenRPC: how methods are to be called, as rpc.discover and GET /openrpc.json tell it. What the compiler knows of a
// function becomes a descriptor; what a provider has said of its method is taken as it is, once it has the right form.
// Pure. The format: https://spec.open-rpc.org
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wirecall/codec.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::rpc {

/// Appends the member "params": an array of content descriptors.
void write_params(Writer& writer, const Method& method);
/// Appends the member "result": a content descriptor.
void write_result(Writer& writer, const Method& method);

/// A method as others describe it, each part JSON text or empty.
struct DescribedMethod {
  std::string name;
  std::string summary;  ///< not JSON
  std::string params;   ///< an array of content descriptors; anything else is a schema of the params
  std::string result;   ///< a content descriptor, an object with "schema"; anything else is a schema
};

/// What a document says of the server.
struct DocumentOrigin {
  std::string_view title = "wirecall";
  std::span<const std::string> urls = {};  ///< where its methods are called by HTTP; none where they are not
};

/// A document of those methods of `registry` that the principal may call, and of `others`, by name. `version` is the
/// one of the format that was asked for: of those known it is given, else the oldest, 1.2.6.
[[nodiscard]] std::string openrpc_document(const Registry& registry, const std::vector<DescribedMethod>& others,
                                           std::string_view version, const Principal* principal = nullptr,
                                           const DocumentOrigin& origin = {});

}  // namespace wirecall::rpc
