// What makes a relayed call a stream: how its caller asks for results as they come, by credit or by a token for LSP's
// $/progress, and how its provider is asked. A provider is asked by a token of the broker's, since two callers may use
// the same one, and for rpc.item besides, which a provider that knows it sends instead: it can be stopped. Pure.
#pragma once

#include <algorithm>
#include <array>

#include "broker/relayed_calls.hpp"
#include "rpc/dispatcher.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/message.hpp"

namespace wirecall::broker {

struct StreamEdits;
class Splice;

/// The values of an object's members of these names, views into it; empty for those that are not there. One that has a
/// name twice has none of them: another reader may take the other.
template <std::size_t N>
std::array<std::string_view, N> members_of(Reader& reader, std::string_view params,
                                           const std::array<std::string_view, N>& names) {
  std::array<std::string_view, N> values{};
  if (params.empty()) return values;
  reader.reset(params);
  if (reader.kind() != ValueKind::object) return values;
  static_cast<void>(reader.begin_object());
  for (std::string_view name; reader.next_member(name);) {
    const auto found = std::ranges::find(names, name);
    const std::string_view value = reader.skip();
    if (found == names.end()) continue;
    std::string_view& slot = values[static_cast<std::size_t>(found - names.begin())];
    if (!slot.empty()) return {};
    slot = value;
  }
  return values;
}

/// The token by which the caller of a request with these params wants $/progress: a string or number; empty for none.
[[nodiscard]] std::string_view progress_token(Reader& reader, std::string_view params);
/// Whether params in another encoding than JSON have one, of whatever kind.
[[nodiscard]] bool asks_for_progress(Reader& reader, std::string_view params);
/// Null for a call that has not asked for its results as they come.
[[nodiscard]] std::unique_ptr<RelayedStream> stream_of(rpc::LoopContext& loop, const Received& message);
/// How many items the provider is asked for at first.
[[nodiscard]] std::uint64_t first_credit(const RelayedCall& call) noexcept;
/// Puts into `splice` what of a request is not as it came since its results are to come one by one, or are not. The id
/// is in `edits` as well.
void edit_stream(rpc::LoopContext& loop, const RelayedCall& call, const Received& message, StreamEdits& edits,
                 Splice& splice);

}  // namespace wirecall::broker
