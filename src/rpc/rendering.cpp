// See rendering.hpp.
#include "rpc/rendering.hpp"

#include <algorithm>

#include "rpc/loop_context.hpp"
#include "rpc/message_sink.hpp"

namespace wirecall::rpc {

// What a piece costs beyond its bytes: looking up and describing a method takes some microseconds.
constexpr std::size_t kPieceSteps = 8;

bool Rendering::advance(MessageSink& sink, std::size_t bytes_max) {
  const Share* const share = sink.share();
  while (!done_) {
    if (share != nullptr && share->steps_left <= 0 && !sink.next_share()) return false;
    const std::size_t before = text_.size();
    done_ = !write_piece() || text_.size() > bytes_max;
    sink.charge(kPieceSteps + std::exchange(more_steps_, 0) + (text_.size() - before) / Share::kBytesOfStep);
  }
  return true;
}

// A registry never forgets a method, so the last one tells, together with how many there are, whether they have
// changed.
const Method* next_own(LoopContext& loop_context, const Registry& registry, std::string_view after) {
  const auto& methods = registry.methods();
  std::vector<const Method*>& sorted = loop_context.own_by_name;
  const Method* const last = methods.empty() ? nullptr : methods.back().get();
  if (sorted.size() != methods.size() || loop_context.own_last != last) {
    sorted.clear();
    for (const auto& method : methods) sorted.push_back(method.get());
    std::ranges::sort(sorted, {}, &Method::name);
    loop_context.own_last = last;
  }
  const auto found = std::ranges::upper_bound(sorted, after, {},
                                              [](const Method* method) { return std::string_view{method->name()}; });
  return found == sorted.end() ? nullptr : *found;
}

}  // namespace wirecall::rpc
