// See received_input.hpp.
#include "rpc/received_input.hpp"

#include "message/call_text.hpp"
#include "message/message_codec.hpp"
#include "message/own_error.hpp"

namespace wirecall::detail {

bool InputWaiter::await_ready() const { return input_ == nullptr || input_->ask(); }

Reader* InputWaiter::take() { return input_ != nullptr ? input_->take() : nullptr; }

Error InputWaiter::refuse() { return input_->refuse(); }

}  // namespace wirecall::detail

namespace wirecall::rpc {

using std::chrono::nanoseconds;

// Items that may come before it is known how large they are, and at most.
constexpr std::uint64_t kFirstCredit = 4;
constexpr std::size_t kCreditMax = 64;

ReceivedInput::ReceivedInput(MessageSink& sink, LoopContext& loop, const Limits& limits, MessageForm form,
                             std::string_view id_json, std::shared_ptr<PeerLoad> load)
    : sink_(&sink),
      loop_(&loop),
      window_bytes_(limits.soft_output),
      held_max_(limits.hard_output),
      form_(MessageForm::text(form.sent)),
      id_json_(id_json),
      load_(std::move(load)) {
  touch();
}

void ReceivedInput::touch() noexcept { last_ = loop_->scheduler != nullptr ? loop_->scheduler->now() : nanoseconds{0}; }

// ---- from the caller ----

static Error broken(LoopContext& loop, std::string_view why) {
  return Error::with_data(ErrorCode::invalid_request,
                          loop.refusals.data(ErrorCode::invalid_request, {}, [&] { return std::string{why}; }));
}

std::optional<Error> ReceivedInput::add(const InputItem& item) {
  if (ended_) return broken(*loop_, "the stream of the request has ended already");
  if (item.sequence != next_sequence_) return broken(*loop_, "items of the request's stream are missing");
  const bool end = item.value.empty();
  if (!end) {
    if (credit_ == 0) return broken(*loop_, "the request's stream has more items than it was given credit");
    const std::size_t bytes = item.value.text.size();
    if (load_->held_bytes + bytes > held_max_)
      return message::limit_exceeded("too much is being kept for this connection", "hard_output", "maybe");
    arrived_.bytes.append(item.value.text);
    if (item.value.encoding == Encoding::json) arrived_.bytes.push_back('\n');  // a number ends where another byte is
    arrived_.ends.push_back({.at = arrived_.bytes.size(), .encoding = item.value.encoding});
    held_.set(load_, arrived_.size() + taken_.size());
    item_bytes_ = std::max(item_bytes_, bytes);
    --credit_;
    ++loop_->stats.stream_items;
  }
  ++next_sequence_;
  ended_ = end;
  touch();
  if (waiting()) wake();
  return std::nullopt;
}

void ReceivedInput::peer_ended() {
  if (ended_ || failure_) return;
  failure_ =
      message::make(ErrorCode::cancelled, "the caller has ended the connection before the end of its stream", "maybe");
  if (waiting()) wake();
}

void ReceivedInput::call_ended() noexcept {
  over_ = true;
  arrived_ = {};
  held_.release();
}

nanoseconds ReceivedInput::next_due(nanoseconds gap_max) const noexcept { return last_ + gap_max; }

// ---- to the handler ----

bool ReceivedInput::ask() {
  if (!over_) {
    touch();
    give_credit();
  }
  return over_ || failure_ || ended_ || unread() != 0;
}

Reader* ReceivedInput::take() {
  if (over_) throw Cancelled{};
  if (at_ == taken_.ends.size()) {
    taken_.bytes.clear();
    taken_.ends.clear();
    at_ = 0;
    std::swap(taken_, arrived_);
    held_.set(load_, taken_.size());
    if (taken_.ends.empty()) {
      if (failure_) throw Error{*failure_};
      return nullptr;
    }
  }
  const std::size_t begin = at_ == 0 ? 0 : taken_.ends[at_ - 1].at;
  const Values::End end = taken_.ends[at_++];
  ++read_sequence_;
  const Codec& codec = end.encoding == Encoding::json ? loop_->codecs.codec : message::codec_of(end.encoding).values();
  if (reader_ == nullptr || &reader_->codec() != &codec) reader_ = codec.reader();
  reader_->reset(taken_.bytes.padded().substr(begin, end.at - begin));
  return &*reader_;
}

Error ReceivedInput::refuse() {
  static_cast<void>(reader_->failed_at(read_sequence_ - 1));
  static_cast<void>(reader_->failed_at("input"));
  failure_ = decode_error(*reader_);
  reader_->clear_failure();
  at_ = taken_.ends.size();
  arrived_.ends.clear();
  arrived_.bytes.clear();
  return *failure_;
}

// Little of much is kept until there is more: half a window at a time.
void ReceivedInput::give_credit() {
  if (ended_ || failure_) return;
  std::size_t window = kFirstCredit;
  if (item_bytes_ != 0) window = std::clamp(window_bytes_ / item_bytes_, std::size_t{1}, kCreditMax);
  const std::size_t outstanding = static_cast<std::size_t>(credit_) + unread();
  if (outstanding > window / 2) return;
  send_credit(window - outstanding);
  credit_ += window - outstanding;
}

void ReceivedInput::send_credit(std::uint64_t more) {
  OutgoingMessage message{*sink_};
  message::append_credit(message.text(), id_json_, more);
  message.close_as(form_);
}

}  // namespace wirecall::rpc
