// EventText: one notification for all who are sent it, in each encoding that they speak. A peer that speaks the one in
// which it came is sent those bytes; for others it is transcoded once an encoding, when the first of them is met. A
// value without a form in another encoding leaves the event without a form there, and it is not sent to those peers.
// Text in JSON is one line towards a peer that may read lines: this is the only way in which others' text is sent
// without being looked at again (MessageSink::close_compact_as).
// Refers to the event and to the loop_context. One thread.
#pragma once

#include "base/one_line.hpp"
#include "message/message_codec.hpp"
#include "rpc/loop_context.hpp"
#include "rpc/memory_budget.hpp"
#include "rpc/message_sink.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/limits.hpp"

namespace wirecall::rpc {

/// The notification {"jsonrpc":"2.0","method":topic,"params":…} in JSON; `params` is JSON text, empty for none.
[[nodiscard]] Buffer event_of(std::string_view topic, std::string_view params);
/// The same in the encoding of `params`.
[[nodiscard]] Buffer event_of(LoopCodecs& codecs, std::string_view topic, EncodedText params);

class EventText {
 public:
  /// `text` is a valid message; its first byte tells in which encoding.
  EventText(std::string_view text, LoopContext& loop_context, const Limits& limits) noexcept
      : text_(text),
        loop_context_(&loop_context),
        limits_(&limits),
        encoding_(message::encoding_of(text.front())),
        has_breaks_(encoding_ == Encoding::json && has_line_break(text)) {}
  EventText(EventText&&) = delete;

  /// As it came.
  [[nodiscard]] std::string_view original() const noexcept { return text_; }
  /// What the other forms hold that it has been made.
  [[nodiscard]] std::size_t forms_bytes() const noexcept;
  enum class SendResult : std::uint8_t {
    yes,
    no_form,   ///< in the peer's encoding
    no_budget  ///< it would be too much (MessageSink::has_budget_for)
  };
  /// Throws std::bad_alloc: nothing has been sent.
  [[nodiscard, gnu::always_inline]] SendResult send_to(MessageSink& sink) {
    const Encoding wanted = sink.encoding();
    if (wanted != encoding_ || has_breaks_) [[unlikely]]
      return send_form(sink, wanted);
    return send(sink, text_, wanted);
  }

 private:
  struct Forms;
  struct DropForms {
    void operator()(Forms* forms) const noexcept;
  };

  [[gnu::always_inline]] static SendResult send(MessageSink& sink, std::string_view text, Encoding encoding) {
    if (text.size() > kBytesUnasked && !sink.has_budget_for(text.size())) [[unlikely]]
      return SendResult::no_budget;
    OutgoingMessage message{sink};
    message.text().append(text);
    message.close_compact_as(MessageForm::native(encoding));
    return SendResult::yes;
  }
  [[nodiscard]] SendResult send_form(MessageSink& sink, Encoding wanted);
  [[nodiscard]] Forms& forms();
  [[nodiscard]] std::string_view one_line();
  [[nodiscard]] std::string_view in(Encoding wanted);
  [[nodiscard]] bool to_json(Buffer& json);
  [[nodiscard]] bool from_json(Encoding wanted, Buffer& out);

  std::string_view text_;
  LoopContext* loop_context_;
  const Limits* limits_;
  std::unique_ptr<Forms, DropForms> forms_;  // null as long as everybody takes it as it is
  const Encoding encoding_;
  const bool has_breaks_;
};

}  // namespace wirecall::rpc
