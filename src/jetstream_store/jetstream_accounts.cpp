// See jetstream_accounts.hpp.
#include "jetstream_store/jetstream_accounts.hpp"

#include "base/dotted_name.hpp"
#include "jetstream_store/jetstream_answers.hpp"

namespace wirecall::jetstream_store {

using durable::Done;
using durable::Failure;
using durable::Outcome;
using std::chrono::nanoseconds;

// For which what was counted holds.
constexpr std::chrono::milliseconds kCountedTime{1000};
// Beyond so many, those are forgotten whose time is over.
constexpr std::size_t kAccountsMax = 1024;

std::optional<Failure> JetStreamAccounts::why_full(const Account& account, std::uint64_t bytes) const {
  if (limits_.events != 0 && account.events >= limits_.events) {
    return Failure{.kind = Failure::Kind::full,
                   .why = "as many events of this principal are kept as may be",
                   .limit = "durable.principal_events"};
  }
  if (limits_.bytes != 0 && account.bytes + bytes > limits_.bytes) {
    return Failure{.kind = Failure::Kind::full,
                   .why = "the events of this principal hold too many bytes",
                   .limit = "durable.principal_event_bytes"};
  }
  return std::nullopt;
}

// Nothing is refused for what was counted a while ago.
void JetStreamAccounts::require_room(const std::string& principal, std::size_t bytes, durable::Then<Done> then) {
  if (principal.empty() || (limits_.events == 0 && limits_.bytes == 0)) return then(Done{});
  const nanoseconds now = scheduler_->now();
  if (accounts_.size() > kAccountsMax)
    std::erase_if(accounts_, [now](const auto& one) { return one.second.waiting.empty() && one.second.until < now; });
  const std::string token = token_of(principal);
  Account& account = accounts_[token];
  if (account.waiting.empty() && now < account.until && !why_full(account, bytes)) {
    ++account.events;
    account.bytes += bytes;
    return then(Done{});
  }
  account.waiting.push_back({bytes, std::move(then)});
  if (account.waiting.size() == 1) read(token);
}

void JetStreamAccounts::read(const std::string& token) { read_stream(token, 0, std::make_shared<Account>()); }

void JetStreamAccounts::read_stream(const std::string& token, std::size_t at, std::shared_ptr<Account> read) {
  if (at == streams_.size()) {
    Account& account = accounts_[token];
    account.events = read->events;
    account.bytes = read->bytes;
    account.until = scheduler_->now() + kCountedTime;
    return answer(token, Done{});
  }
  const auto& [stream, prefix] = streams_[at];
  const auto count = [read, words = prefix.size() + token.size() + 1](std::string_view subject, std::uint64_t events) {
    std::string_view rest = subject.substr(std::min(words, subject.size()));
    read->events += events;
    read->bytes += events * to_number(take_word(rest));
  };
  jetstream_->list_subjects(stream, prefix + token + ".>", count,
                            [this, token, at, read](const Outcome<Done>& outcome) {
                              if (!outcome) return answer(token, outcome);
                              read_stream(token, at + 1, read);
                            });
}

void JetStreamAccounts::answer(const std::string& token, const Outcome<Done>& outcome) {
  for (Waiting& one : std::exchange(accounts_[token].waiting, {})) {
    Account& account = accounts_[token];
    if (!outcome) {
      one.then(outcome);
    } else if (std::optional<Failure> full = why_full(account, one.bytes)) {
      one.then(std::unexpected(*std::move(full)));
    } else {
      ++account.events;
      account.bytes += one.bytes;
      one.then(Done{});
    }
  }
}

}  // namespace wirecall::jetstream_store
