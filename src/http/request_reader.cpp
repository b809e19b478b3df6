// See request_reader.hpp.
#include "http/request_reader.hpp"

namespace wirecall::net {

// A body that brings less than this within Limits::header_timeout_ms is given up.
constexpr std::size_t kBodyBytesMin = 4096;

// The beginning of a head, before which nobody knows who sends it (Limits::unidentified_bytes).
class HttpRequestReader::HeldHead final : public rpc::MemoryConsumer {
 public:
  explicit HeldHead(HttpRequestReader& reader) : reader_(&reader) {}

 private:
  void evict() override { reader_->drop_head(); }

  HttpRequestReader* reader_;
};

HttpRequestReader::HttpRequestReader(HttpChannel& channel) noexcept : channel_(&channel) {}

HttpRequestReader::~HttpRequestReader() {
  channel_->host().loop.stop(*this);
  channel_->give_back(head_);
  channel_->give_back(body_.kept());
}

framing::HttpHeadRead HttpRequestReader::read_rest(std::string_view input, framing::HttpHead& head) {
  const std::size_t bytes_max = channel_->host().limits.header_bytes;
  const std::size_t kept = head_.size();
  head_.append(input.substr(0, bytes_max + 1 - kept));
  framing::HttpHeadRead read = read_http_head(head_.view(), bytes_max, head);
  if (read.size == 0) return read;
  held_head_.reset();
  read.size -= kept;
  return read;
}

void HttpRequestReader::keep(std::string_view input) {
  head_ = channel_->host().loop.take_buffer();
  head_.append(input);
}

void HttpRequestReader::hold_unidentified() {
  if (!held_head_) held_head_ = std::make_unique<HeldHead>(*this);
  Host& host = channel_->host();
  host.loop_context.budgets.unidentified.hold(*held_head_, head_.size(), host.limits.unidentified_bytes);
}

void HttpRequestReader::drop_head() {
  channel_->give_back(head_);
  channel_->stop_reading(CloseReason::refused);
}

void HttpRequestReader::watch_pace() {
  const bool needed = !channel_->input_ended() && (body_.reading() || !head_.empty());
  if (needed == pacing_) return;
  if (!needed) return end_pace();
  pacing_ = true;
  static_cast<void>(body_.take_progress());
  Host& host = channel_->host();
  host.loop.start(*this, std::chrono::milliseconds{host.limits.header_timeout_ms});
}

void HttpRequestReader::end_pace() noexcept {
  pacing_ = false;
  channel_->host().loop.stop(*this);
}

void HttpRequestReader::expired() {
  pacing_ = false;
  if (channel_->over() || channel_->input_ended() || channel_->off_loop() != 0) return;
  const bool comes = body_.reading() && (body_.take_progress() >= kBodyBytesMin || channel_->backpressured());
  if (comes) return channel_->within_memory([&] { watch_pace(); });
  channel_->request_is_late();
}

}  // namespace wirecall::net
