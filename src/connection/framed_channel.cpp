// See framed_channel.hpp.
#include "connection/framed_channel.hpp"

#include "base/one_line.hpp"

namespace wirecall::net {

FramedChannel::FramedChannel(Host& host, std::unique_ptr<transport::ByteStream> stream,
                             std::unique_ptr<framing::Framing> framing)
    : Channel(host, std::move(stream)),
      framing_(std::move(framing)),
      tail_(framing_->tail().empty() ? '\0' : framing_->tail().front()),
      tail_bytes_(static_cast<std::uint8_t>(std::min<std::size_t>(framing_->tail().size(), 2))),
      head_bytes_(static_cast<std::uint8_t>(framing_->head_bytes())),
      binary_(framing_->carries_binary()),
      lines_(framing_->sends_lines()) {}

FramedChannel::~FramedChannel() = default;

Buffer& FramedChannel::open_message() {
  output();
  begin_ = out_.size();
  if (head_bytes_ != 0) {
    static_cast<void>(out_.reserve(head_bytes_));
    out_.grow(head_bytes_);
  }
  return out_;
}

// The only ways out. Towards a peer that may read lines each message is one line, or it would read what a handler or
// another peer has written behind a line break as a message of ours.
void FramedChannel::close_message_as(MessageForm form) {
  if (lines_) make_one_line(out_.data() + begin_, out_.data() + out_.size());
  close_compact_as(form);
}

void FramedChannel::close_compact_as(MessageForm form) {
  WIRECALL_DEBUG_ASSERT(!lines_ || !has_line_break(out_.view().substr(begin_)));
  ++host_->loop_context.stats.messages_out;
  try {
    if (head_bytes_ != 0) {
      if (form.as_text && !transcode_output(form.sent, begin_ + head_bytes_)) [[unlikely]]
        return discard_message();
      framing_->seal(out_, begin_, form.sent == Encoding::json);
    }
    if (tail_bytes_ == 1) [[likely]] {
      out_.push_back(tail_);
    } else if (tail_bytes_ != 0) {
      out_.append(framing_->tail());
    }
  } catch (const std::bad_alloc&) {
    return fail_out_of_memory();
  }
  output_grew(begin_);
}

void FramedChannel::send_as_it_is(std::string_view bytes) {
  const std::size_t waiting = output().size();
  out_.append(bytes);
  output_grew(waiting);
}

// False when nothing is left to be sent of what is behind `at`.
bool FramedChannel::transcode_output(Encoding encoding, std::size_t at) {
  message::Transcoder& transcoder = host_->loop_context.codecs.transcoder(encoding);
  if (!unsent_) unsent_ = std::make_unique<Unsent>();
  const bool any = transcoder.from_json_behind(at, host_->limits, out_, &unsent_->streams);
  for (std::string& news : transcoder.take_refusals()) {
    unsent_->news.push_back(std::move(news));
    request_turn_end();
  }
  return any;
}

std::vector<std::string> FramedChannel::take_news() {
  return unsent_ ? std::exchange(unsent_->news, {}) : std::vector<std::string>{};
}

}  // namespace wirecall::net
