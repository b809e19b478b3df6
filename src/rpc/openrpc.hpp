// OpenRPC: how methods are to be called, as rpc.discover and GET /openrpc.json tell it. What the compiler knows of a
// function becomes a descriptor; what a provider has said of its method is taken as it is, once it has the right form.
// Pure. The format: https://spec.open-rpc.org
#pragma once

#include "rpc/rendering.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::rpc {

/// Appends the member "params": an array of content descriptors.
void write_params(Writer& writer, const Method& method);
/// Appends the member "result": a content descriptor.
void write_result(Writer& writer, const Method& method);
/// Appends the member "x-subscription" of a method that subscribes: its names, and the schema of what comes.
void write_subscription(Writer& writer, const Method& method);

/// A method as others describe it, each part JSON text or empty.
struct DescribedMethod {
  std::string name;
  std::string summary;            ///< not JSON
  std::string params;             ///< an array of content descriptors; anything else is a schema of the params
  std::string result;             ///< a content descriptor, an object with "schema"; anything else is a schema
  std::string input = {};         ///< a schema of an item of the stream that it takes
  std::string subscription = {};  ///< as `write_subscription` has it
  bool hidden = false;            ///< from who asks: only the name is filled in
};

/// What a document says of the server.
struct DocumentOrigin {
  std::string_view title = "wirecall";
  std::span<const std::string> urls = {};  ///< where its methods are called by HTTP; none where they are not
};

/// Where methods come from that are not of the process's own.
class MethodSource {
 public:
  /// Fills in the first whose name is behind `after`; false for none.
  [[nodiscard]] virtual bool next_method(std::string_view after, const Principal* asker,
                                         DescribedMethod& method) const = 0;

 protected:
  ~MethodSource() = default;
};

/// A document of those methods of `registry` that who asks may call, and of `others` (null for none), by name.
/// `version` is the one of the format that was asked for: of those known it is given, else the oldest, 1.2.6.
class OpenRpcDocument final : public Rendering {
 public:
  OpenRpcDocument(LoopContext& loop_context, const Registry& registry, const MethodSource* others,
                  std::string_view version, Asker asker, const DocumentOrigin& origin = {});

 private:
  bool write_piece() override;
  void begin_method(std::string_view name, std::string_view summary);

  LoopContext* loop_context_;
  const Registry* registry_;
  const MethodSource* others_;
  const Asker asker_;
  const std::unique_ptr<Writer> writer_;
  const std::unique_ptr<Reader> reader_;
  std::string after_;  // the name of the last method
};

}  // namespace wirecall::rpc
