// See long_message.hpp.
#include "session/long_message.hpp"

#include <new>
#include <system_error>

#include "framing/byte_order_mark.hpp"

namespace wirecall::session {

void LongMessage::read(const std::shared_ptr<LongMessage>& message, detail::BlockingPool& pool) {
  run(message, &LongMessage::read_or_check, pool);
}

void LongMessage::transcode(const std::shared_ptr<LongMessage>& message, detail::BlockingPool& pool) {
  run(message, &LongMessage::make_json, pool);
}

void LongMessage::run(const std::shared_ptr<LongMessage>& message, Step step, detail::BlockingPool& pool) {
  try {
    pool.run([message, step]() -> detail::BlockingPool::Job {
      message->perform(step);
      return [message] { message->tell(); };
    });
  } catch (const std::system_error&) {
    message->perform(step);
    message->tell();
  }
}

void LongMessage::tell() noexcept {
  if (then_) then_();
  hold_.reset();
}

void LongMessage::perform(Step step) noexcept {
  try {
    (this->*step)();
  } catch (const std::bad_alloc&) {
    out_of_memory = true;
  }
}

void LongMessage::read_or_check() {
  if (!is_msgpack()) return read_json();
  status = message::Transcoder::check(text.view(), limits_, members);
}

void LongMessage::read_json() {
  std::string_view json = text.padded();
  scan = read_message(json, limits_, true, message);
  if (scan.status != ScanStatus::malformed || scan.offset != 0) return;
  mark = framing::byte_order_mark_bytes(json);
  json.remove_prefix(mark);
  if (mark != 0) scan = read_message(json, limits_, true, message);
}

void LongMessage::make_json() {
  message::Transcoder transcoder;
  Buffer json;
  status = transcoder.checked_to_json(text.view(), limits_, json);
  text = std::move(json);
  transcoded = true;
  if (status != Status::done) return;
  unheld = transcoder.take_unheld();
  cancels = transcoder.take_cancels();
  read_json();
}

}  // namespace wirecall::session
