// What the parts of a router share where they write messages of their own. One thread.
#pragma once

#include <array>
#include <new>

#include "base/decimal.hpp"
#include "broker/splice.hpp"
#include "rpc/dispatcher.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/message.hpp"

namespace wirecall::broker {

/// A number as JSON text.
class Digits {
 public:
  explicit Digits(std::uint64_t number) noexcept
      : size_(static_cast<std::size_t>(write_decimal(digits_.data(), number) - digits_.data())) {}
  [[nodiscard]] std::string_view view() const noexcept { return {digits_.data(), size_}; }

 private:
  std::array<char, kDecimalDigitsMax> digits_;
  std::size_t size_;
};

/// The id by which a provider is asked, as JSON text. Items and credit name calls of either side of a connection: so
/// that of a call with an input is a string, since clients number their own calls.
class ProviderId {
 public:
  ProviderId(std::uint64_t number, bool has_input) noexcept
      : size_(static_cast<std::size_t>(write_decimal(text_.data() + 1, number) - text_.data())), quoted_(has_input) {
    text_.front() = text_[size_] = '"';
  }
  [[nodiscard]] std::string_view view() const noexcept {
    return quoted_ ? std::string_view{text_.data(), size_ + 1} : digits();
  }
  [[nodiscard]] std::string_view digits() const noexcept { return {text_.data() + 1, size_ - 1}; }

 private:
  std::array<char, kDecimalDigitsMax + 2> text_;
  std::size_t size_;
  bool quoted_;
};

/// What a request has in place of what its caller wrote, where that is not a part of either.
struct StreamEdits {
  ProviderId id;
  std::optional<Digits> credit = std::nullopt;
  std::string token = {};
  std::string id_and_stream = {};
};

/// Takes `to` off a message, unless who gets it looks for the provider, and sets whose it is to `from`, JSON text or
/// empty.
inline void address(Splice& splice, const Received& message, std::string_view from, bool keeps_to = false) {
  if (message.has(Member::to) && !keeps_to) splice.remove(message[Member::to]);
  if (!message.has(Member::from)) {
    if (!from.empty()) splice.prepend(R"("from":)", from);
  } else if (from.empty()) {
    splice.remove(message[Member::from]);
  } else {
    splice.replace(message[Member::from], from);
  }
}

/// Appends a notification as it goes on.
inline void append_addressed(Buffer& out, const Received& message, std::string_view from, bool keeps_to = false) {
  if (!message.has(Member::to) && !message.has(Member::from) && from.empty()) return out.append(message.text);
  Splice splice{message.text};
  address(splice, message, from, keeps_to);
  splice.append_to(out);
}

/// The same in its encoding.
inline void append_addressed(rpc::LoopCodecs& codecs, Buffer& out, const Received& message, std::string_view from,
                             bool keeps_to = false) {
  if (message.is_json()) return append_addressed(out, message, from, keeps_to);
  codecs.message_writer(message.encoding)
      .append_request(out, message.text, {.id = 0, .from_json = from, .keeps_to = keeps_to});
}

/// Appends one message to what a peer is sent, whole or not at all.
template <class Append>
void append_message(rpc::MessageSink& sink, const Append& append) {
  rpc::OutgoingMessage message{sink};
  append(message.text());
  message.close();
}
/// The same of that form: for the answer to a request, in its encoding.
template <class Append>
void append_message_as(rpc::MessageSink& sink, MessageForm form, const Append& append) {
  rpc::OutgoingMessage message{sink};
  append(message.text());
  message.close_as(form);
}

/// What it costs of a connection's share (rpc::Share) to send so many others a text of so many bytes.
[[nodiscard]] inline std::size_t cost_of_deliveries(std::size_t count, std::size_t bytes) noexcept {
  constexpr std::size_t kDeliveriesInStep = 2;
  constexpr std::size_t kBytesInStep = 8 * rpc::Share::kBytesOfStep;  // which are copied, not looked at
  return count / kDeliveriesInStep + count * bytes / kBytesInStep;
}

/// Where nobody waits for what is said, or learns the same by other means.
template <class Act>
void if_memory_allows(const Act& act) noexcept {
  try {
    act();
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace wirecall::broker
