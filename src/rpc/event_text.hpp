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

#include "base/one_line.hpp"
#include "message/transcoder.hpp"
#include "rpc/dispatcher.hpp"
#include "rpc/holders.hpp"
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
  EventText(std::string_view text, Workspace& workspace, const Limits& limits) noexcept
      : text_(text),
        workspace_(&workspace),
        limits_(&limits),
        packed_(message::is_msgpack(text.front())),
        has_breaks_(!packed_ && has_line_break(text)) {}
  EventText(EventText&&) = delete;

  /// As it came.
  [[nodiscard]] std::string_view original() const noexcept { return text_; }
  /// What the other forms hold that it has been made.
  [[nodiscard]] std::size_t forms_bytes() const noexcept;
  enum class Sent : std::uint8_t {
    yes,
    no_form,   ///< in the peer's encoding
    no_budget  ///< it would be too much (Outlet::has_budget_for)
  };
  /// Throws std::bad_alloc: nothing has been sent.
  [[nodiscard, gnu::always_inline]] Sent send_to(Outlet& outlet) {
    const bool packs = outlet.speaks_msgpack();
    if (packs != packed_ || has_breaks_) [[unlikely]]
      return send_form(outlet, packs);
    return send(outlet, text_, packs);
  }

 private:
  struct Forms;
  struct DropForms {
    void operator()(Forms* forms) const noexcept;
  };

  [[gnu::always_inline]] static Sent send(Outlet& outlet, std::string_view text, bool packed) {
    if (text.size() > kBytesUnasked && !outlet.has_budget_for(text.size())) [[unlikely]]
      return Sent::no_budget;
    Buffer& out = outlet.open_message();
    try {
      out.append(text);
    } catch (...) {
      outlet.discard_message();
      throw;
    }
    outlet.close_compact_as(packed ? MessageForm::packed : MessageForm::json);
    return Sent::yes;
  }
  [[nodiscard]] Sent send_form(Outlet& outlet, bool packs);
  [[nodiscard]] Forms& forms();
  [[nodiscard]] std::string_view one_line();
  [[nodiscard]] std::string_view transcoded();
  [[nodiscard]] bool to_json(Buffer& json);
  [[nodiscard]] bool to_msgpack(Buffer& packed);

  std::string_view text_;
  Workspace* workspace_;
  const Limits* limits_;
  std::unique_ptr<Forms, DropForms> forms_;  // null as long as everybody takes it as it is
  const bool packed_;
  const bool has_breaks_;
};

}  // namespace wirecall::rpc
