// The envelope reader against its scalar twin, against the scanner for what is JSON and where it ends, and against the
// slow reading of slow_envelope.hpp for what a message is.
#include "codec/json_scan.hpp"
#include "fuzz/slow_envelope.hpp"
#include "fuzz/texts.hpp"
#include "message/envelope.hpp"

#define FUZZ_FRESH message
#include "fuzz/mutator.hpp"

namespace {

using fuzz::require;
using wirecall::Member;
using wirecall::MessageKind;
using wirecall::Received;
using wirecall::Scan;
using wirecall::ScanStatus;

const wirecall::Limits kLimits{.batch = 3};

void compare(const Received& a, const Received& b, std::string_view text) {
  require(a.kind == b.kind && a.fault == b.fault && a.present == b.present && a.text == b.text, "twins differ", text);
  if (a.kind == MessageKind::batch) require(a.batch_size == b.batch_size, "twins count differently", text);
  if (a.has(Member::method)) require(a.method_escaped == b.method_escaped, "twins differ on escapes", text);
  for (std::size_t i = 0; i < wirecall::kMemberCount; ++i) {
    const auto member = static_cast<Member>(i);
    if (a.has(member)) require(a[member] == b[member], "twins differ on a member", text);
  }
}

void compare(const Received& message, const fuzz::SlowMessage& slow, std::string_view text) {
  require(message.kind == slow.kind, "not the kind of message that it is", text);
  if (message.kind != MessageKind::response || slow.only_known)
    require(message.fault == slow.fault, "another fault than it has", text);
  require(message.id() == slow.id, "the id is not as sent", text);
  if (message.kind == MessageKind::batch) require(message.batch_size == slow.elements.size(), "wrong count", text);
  if (message.kind != MessageKind::request && message.kind != MessageKind::notification) return;
  for (std::size_t i = 0; i < wirecall::kMemberCount; ++i) {
    const auto member = static_cast<Member>(i);
    const std::string_view value = slow.find(fuzz::kEnvelopeNames[i]);
    require(message.has(member) == !value.empty(), "a member is there that is not, or the other way round", text);
    if (message.has(member)) require(message[member] == value, "a member is not as sent", text);
  }
  require(message.method_escaped == (message.method().find('\\') != std::string_view::npos), "escapes overlooked",
          text);
}

// What the scanner says of `text` as a frame.
Scan expected(std::string_view text, bool whole) {
  const Scan scan = wirecall::json::scan_scalar(text, kLimits.depth);
  if (scan.status != ScanStatus::complete) return scan;
  if (whole) {
    const std::size_t rest = text.find_first_not_of(" \t\r\n", scan.offset);
    return rest == std::string_view::npos ? scan : Scan{ScanStatus::malformed, rest};
  }
  const char first = text[text.find_first_not_of(" \t\r\n")];
  if (first == '{' || first == '[') return scan;
  if (scan.offset == text.size()) return {ScanStatus::incomplete, scan.offset};
  return wirecall::is_space(text[scan.offset]) ? scan : Scan{ScanStatus::malformed, scan.offset};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = fuzz::text_of(data, size);
  const fuzz::PaddedText padded{input};
  const std::string_view text = padded.view();
  for (const bool whole : {true, false}) {
    Received message;
    Received twin;
    const Scan scan = wirecall::read_message(text, kLimits, whole, message);
    const Scan scalar = wirecall::message::read_message_scalar(text, kLimits, whole, twin);
    require(scan.status == scalar.status && scan.offset == scalar.offset, "twins end differently", input);
    const Scan should = expected(text, whole);
    require(scan.status == should.status && scan.offset == should.offset, "it ends where no value does", input);
    if (scan.status != ScanStatus::complete) continue;
    compare(message, twin, input);
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    require(message.text == text.substr(begin, scan.offset - begin), "the message is not the value", input);
    const fuzz::SlowMessage slow = fuzz::read_slowly(message.text, kLimits.batch);
    compare(message, slow, input);
    if (message.kind != MessageKind::batch) continue;
    wirecall::BatchElements elements{message.text};
    Received element;
    for (const std::string_view slow_element : slow.elements) {
      require(elements.next(element) && element.text == slow_element, "an element is not as sent", input);
      fuzz::SlowMessage slow_message = fuzz::read_slowly(slow_element, kLimits.batch);
      if (slow_element[0] == '[') {  // no batch in a batch
        slow_message = {};
      }
      compare(element, slow_message, input);
    }
    require(!elements.next(element), "an element too many", input);
  }
  return 0;
}
