// See event_stream.hpp.
#include "http/event_stream.hpp"

#include "base/one_line.hpp"
#include "http/response.hpp"

namespace wirecall::net {

// Nothing is said for no longer than this: what lies between often closes what has been silent for a minute.
constexpr std::chrono::seconds kCommentPause{15};

EventStream::EventStream(HttpChannel& channel)
    : HttpSink(channel),
      dispatcher(channel.host().registry, *this, channel.host().limits, channel.host().loop_context,
                 channel.load().get()) {}

void EventStream::write_head(std::string_view fields) {
  Buffer& out = channel_->output();
  const std::size_t waiting = out.size();
  write_endless_response(out, {.content_type = kEventType, .fields = fields});
  channel_->output_grew(waiting);
}

void EventStream::keep_alive() { channel_->host().loop.start(*this, kCommentPause); }

void EventStream::abandon() noexcept {
  channel_->host().loop.stop(*this);
  dispatcher.abandon();
}

void EventStream::expired() {
  channel_->within_memory([this] {
    keep_alive();
    if (!channel_->has_output()) write_lines(":\n\n");
  });
}

void EventStream::write_lines(std::string_view lines) {
  Buffer& out = channel_->output();
  const std::size_t waiting = out.size();
  out.append(lines);
  channel_->output_grew(waiting);
}

Buffer& EventStream::open_message() {
  text_.clear();
  return text_;
}

void EventStream::close_message() {
  try {
    Received message;
    static_cast<void>(read_message(text_.padded(), channel_->host().limits, true, message));
    written(message);
  } catch (const std::bad_alloc&) {
    channel_->fail_out_of_memory();
  }
}

void EventStream::write_event(std::string_view fields, std::string_view message) {
  Buffer& out = channel_->output();
  const std::size_t waiting = out.size();
  try {
    out.append(fields);
    out.append("data: ");
    const std::size_t begin = out.size();
    out.append(message);
    make_one_line(out.data() + begin, out.data() + out.size());  // a line break would end the event's data
    out.append("\n\n");
  } catch (...) {
    out.truncate(waiting);
    throw;
  }
  ++channel_->host().loop_context.stats.messages_out;
  channel_->output_grew(waiting);
}

}  // namespace wirecall::net
