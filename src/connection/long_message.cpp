// See long_message.hpp.
#include "connection/long_message.hpp"

#include <system_error>

#include "framing/byte_order_mark.hpp"

namespace wirecall::net {

void LongMessage::perform() noexcept {
  try {
    (this->*step_)();
  } catch (const std::bad_alloc&) {
    out_of_memory = true;
  }
}

void LongMessage::tell() noexcept {
  bytes_ = text.capacity();  // what was compressed is larger now
  if (sender_.then) sender_.then();
  sender_.hold.reset();
}

void LongMessage::read_or_check() {
  if (encoding == Encoding::json) return read_json();
  status = message::codec_of(encoding).make_transcoder()->check(text.view(), limits_, members);
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
  const std::unique_ptr<message::Transcoder> transcoder = message::codec_of(encoding).make_transcoder();
  Buffer json;
  status = transcoder->checked_to_json(text.view(), limits_, json);
  text = std::move(json);
  transcoded = true;
  if (status != Status::done) return;
  unrepresentable = transcoder->take_unrepresentable();
  cancels = transcoder->take_cancels();
  read_json();
}

void LongMessage::unpack() {
  Buffer whole;
  unpacked = deflate_->inflate(text.view(), limits_.max_message_size, whole);
  text = std::move(whole);
}

void LongReader::begin(const std::shared_ptr<LongMessage>& message, LongMessage::Step step) {
  message->step_ = step;
  const auto [line, alone] = lines_.try_emplace(message->sender_.account.get());
  if (!alone) return line->second.push_back(message);
  if (!run(message)) finish(*message);
}

// False when there is no thread for it, and it has been read here, or no memory.
bool LongReader::run(const std::shared_ptr<LongMessage>& message) {
  try {
    pool_->run([this, message]() -> detail::BlockingPool::Job {
      message->perform();
      return [this, message] { finish(*message); };
    });
    return true;
  } catch (const std::system_error&) {
    message->perform();
  } catch (const std::bad_alloc&) {
    message->out_of_memory = true;
  }
  return false;
}

// The next one of its account has its turn; one whose connection has gone is left out.
void LongReader::finish(LongMessage& message) noexcept {
  const auto line = lines_.find(message.sender_.account.get());
  message.tell();
  while (!line->second.empty()) {
    const std::shared_ptr<LongMessage> next = std::move(line->second.front());
    line->second.pop_front();
    if (!next->sender_.then) continue;
    if (run(next)) return;
    next->tell();
  }
  lines_.erase(line);
}

}  // namespace wirecall::net
