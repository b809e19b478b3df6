// EventText: one notification for all who are sent it, in JSON and in MessagePack. A peer that speaks the encoding in
// which it came is sent those bytes; for all others it is transcoded once, when the first of them is met. A value
// without a form in the other encoding leaves the event without a form there, and it is not sent to those peers.
// Text in JSON is one line towards a peer that may read lines: this is the only way in which others' text is sent
// without being looked at again (Outlet::close_compact_as).
// Refers to the event and to the workspace. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "rpc/dispatcher.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/limits.hpp"

namespace wirecall::rpc {

/// The notification {"jsonrpc":"2.0","method":topic,"params":…} in JSON; `params` is JSON text, empty for none.
[[nodiscard]] Buffer event_of(std::string_view topic, std::string_view params);
/// The same in MessagePack, in which `params` are as well.
[[nodiscard]] Buffer packed_event_of(std::string_view topic, std::string_view params);

class EventText {
 public:
  /// `text` is a valid message in JSON or MessagePack; its first byte tells which.
  EventText(std::string_view text, Workspace& workspace, const Limits& limits) noexcept;
  ~EventText();
  EventText(EventText&&) = delete;

  /// As it came.
  [[nodiscard]] std::string_view original() const noexcept { return text_; }
  /// False where it has no form in the peer's encoding. Throws std::bad_alloc. In both cases nothing has been sent.
  [[nodiscard]] bool send_to(Outlet& outlet);

 private:
  struct Forms;

  [[nodiscard]] Forms& forms();
  [[nodiscard]] std::string_view one_line();
  [[nodiscard]] std::string_view transcoded();
  [[nodiscard]] bool to_json(Buffer& json);
  [[nodiscard]] bool to_msgpack(Buffer& packed);

  std::string_view text_;
  Workspace* workspace_;
  const Limits* limits_;
  std::unique_ptr<Forms> forms_;  // null as long as everybody takes it as it is
  const bool packed_;
  const bool has_breaks_;
};

}  // namespace wirecall::rpc
