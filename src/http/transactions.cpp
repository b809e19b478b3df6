// See transactions.hpp.
#include "http/transactions.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "http/transaction.hpp"

namespace wirecall::net {

// Transactions of one connection that wait: beyond them it is not read, since their responses have an order anyway.
constexpr std::size_t kWaitingMax = 256;

static bool is_done(const std::unique_ptr<HttpTransaction>& transaction) noexcept {
  return transaction->dispatcher.in_flight() == 0;
}

HttpTransactions::HttpTransactions(HttpChannel& channel) noexcept : channel_(&channel) {}
HttpTransactions::~HttpTransactions() = default;

void HttpTransactions::make_current() { current_ = std::make_unique<HttpTransaction>(*channel_, *this); }

void HttpTransactions::drop_current() noexcept { current_.reset(); }

bool HttpTransactions::working() const noexcept { return !waiting_.empty() || !std::ranges::all_of(silent_, is_done); }

bool HttpTransactions::has_few() const noexcept {
  return waiting_.size() <= kWaitingMax / 2 && held_bytes_ <= channel_->host().limits.soft_output;
}

void HttpTransactions::finish() {
  WIRECALL_ASSERT(!channel_->last_response);
  HttpTransaction& transaction = *current_;
  channel_->last_response = transaction.closes;
  if (transaction.is_answered() && waiting_.empty() && transaction.held_bytes() == 0) [[likely]] {
    if (transaction.dispatcher.in_flight() != 0) [[unlikely]] {
      keep_silent(std::move(current_));
    } else {
      transaction.reset();
    }
    return;
  }
  if (transaction.is_answered()) channel_->request_turn_end();
  waiting_.push_back(std::move(current_));
  if (waiting_.size() >= kWaitingMax || held_bytes_ > channel_->host().limits.soft_output) channel_->block();
}

// Those that are done say nothing: they are removed when another one is to be kept.
void HttpTransactions::keep_silent(std::unique_ptr<HttpTransaction> transaction) {
  if (silent_.size() == silent_.capacity()) drop_silent();
  silent_.push_back(std::move(transaction));
}

void HttpTransactions::drop_silent() { std::erase_if(silent_, is_done); }

void HttpTransactions::release() {
  std::size_t gone = 0;
  for (; gone != waiting_.size() && waiting_[gone]->is_answered(); ++gone) {
    HttpTransaction& transaction = *waiting_[gone];
    held_bytes_ -= transaction.held_bytes();
    transaction.send_held();
    if (transaction.dispatcher.in_flight() != 0) keep_silent(std::move(waiting_[gone]));
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(gone));
  drop_silent();
}

}  // namespace wirecall::net
