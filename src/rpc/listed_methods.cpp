// See listed_methods.hpp.
#include "rpc/listed_methods.hpp"

#include "rpc/access.hpp"

namespace wirecall::rpc {

ListedMethod list_own(const Method& method) {
  return {.name = method.name(),
          .summary = method.summary(),
          .policy = "exclusive",
          .providers = 1,
          .in_flight = 0,
          .waiting = 0};
}

void append_listed(Buffer& out, const ListedMethod& listed) {
  out.push_back(out.empty() ? '[' : ',');
  out.append(to_json(listed));
}

bool MethodList::write_piece() {
  const Method* const method = next_own(*loop_context_, *registry_, after_);
  if (method == nullptr) {
    text_.append(text_.empty() ? "[]" : "]");
    return false;
  }
  after_ = method->name();
  if (may_call(asker_.principal, after_)) append_listed(text_, list_own(*method));
  return true;
}

}  // namespace wirecall::rpc
