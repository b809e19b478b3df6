// What rpc.methods answers: the methods that can be called, as `wirecall ls` shows them.
#pragma once

#include "rpc/rendering.hpp"
#include "wirecall/principal.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::rpc {

struct ListedMethod {
  std::string_view name;
  std::string_view summary;
  std::string policy;
  std::size_t providers;
  std::size_t in_flight;  ///< at providers
  std::size_t waiting;
};

/// One of the process's own.
[[nodiscard]] ListedMethod list_own(const Method& method);
/// Appends an entry of an array, which begins with the first.
void append_listed(Buffer& out, const ListedMethod& listed);

/// Those of the process's own that who asks may call, by their names.
class MethodList final : public Rendering {
 public:
  MethodList(LoopContext& loop_context, const Registry& registry, Asker asker)
      : loop_context_(&loop_context), registry_(&registry), asker_(std::move(asker)) {}

 private:
  bool write_piece() override;

  LoopContext* loop_context_;
  const Registry* registry_;
  const Asker asker_;
  std::string after_;
};

}  // namespace wirecall::rpc
