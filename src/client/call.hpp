// ClientCall: one call of a client from its encoding to its end. CallList keeps calls in an order; CallTable finds
// those that have been sent by their ids. A call belongs to a CallPool, which lends it to whoever makes a call and uses
// it again afterwards. Its text and cursors are the maker's until it is submitted; its state, and what stands below it,
// is guarded by the client's mutex.
#pragma once

#include <charconv>
#include <optional>
#include <stop_token>
#include <string>

#include "base/assert.hpp"
#include "client/lock.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/error.hpp"
#include "wirecall/request.hpp"

namespace wirecall::net {

class ClientConnection;
class ClientInput;
class ClientStream;
class OutstandingCalls;

/// What a request to stop does: cancels the call.
struct StopCall {
  OutstandingCalls* calls;
  ClientCall* call;
  std::uint64_t generation;
  void operator()() const noexcept;
};

enum class CallState : std::uint8_t {
  idle,     ///< being written by its maker, delivered, or not in use
  queued,   ///< to be sent
  delayed,  ///< to be sent again, not before `not_before`
  sent,     ///< in a connection's output, or out of it; with an id it is in the table
  ended,    ///< and not yet delivered
};

struct ClientCall {
  explicit ClientCall(const Codec& codec = json_codec()) : writer(codec.writer()) {}

  std::unique_ptr<Writer> writer;
  std::unique_ptr<Reader> reader;  ///< of a blocking caller; made when first needed, for `response`
  Buffer request;                  ///< up to where the id goes; natively from behind its head on
  Buffer response;                 ///< for a blocking caller: the result, or the whole response
  std::optional<Error> error;      ///< why it was not sent; later, how it ended
  detail::AnswerFunction done;     ///< empty for a blocking caller
  std::stop_token stop;
  std::optional<std::stop_callback<StopCall>> on_stop;
  std::chrono::milliseconds timeout{0};
  std::chrono::milliseconds wait{0};  ///< from its begin on, while nobody provides its method
  bool own_timeout = false;           ///< `timeout` was asked for with this call; of a stream, it is for all of it
  bool keeps_large = false;           ///< buffers, when it is not in use
  bool idempotent = false;            ///< it may be sent again while it is not known whether it has arrived
  bool has_params = false;
  bool keep_response = false;
  bool wants_json = false;  ///< the result is to be JSON, whatever comes
  Encoding response_encoding = Encoding::json;
  std::string to;            ///< to be said, as JSON text; empty for nobody
  std::string_view layout;   ///< of packed params; empty where they are not packed
  std::uint32_t hops = 0;    ///< to be said; 0 for none
  std::uint32_t credit = 0;  ///< items of a stream that may come at first; 0 for no stream

  /// Between a refusal and the next attempt, after so many: 10 ms, doubled up to 100 ms. Each attempt costs the server.
  [[nodiscard]] static constexpr std::chrono::milliseconds pause_of(std::uint8_t attempts) noexcept {
    return std::chrono::milliseconds{attempts < 4 ? 10 << attempts : 100};
  }

  /// Between one sending of an idempotent call and the next, after so many: 200 ms, doubled up to 3.2 s.
  [[nodiscard]] static constexpr std::chrono::milliseconds pause_of_resending(std::uint8_t resent) noexcept {
    return std::chrono::milliseconds{resent < 4 ? 200 << resent : 3200};
  }

  void enter(CallState next) noexcept {
    WIRECALL_ASSERT(may_enter(state, next));
    state = next;
  }
  /// The id as JSON text. Items and credit name calls of either side, so that those of a call with an input are
  /// strings: a server's own ids are numbers, or other strings.
  [[nodiscard]] std::string id_json() const {
    return input ? std::string{kInputIdBegin}.append(std::to_string(id)).append("\"") : std::to_string(id);
  }
  static constexpr std::string_view kInputIdBegin = "\"i";
  /// What stands behind the begin of a string id, in such a string.
  [[nodiscard]] static std::optional<std::uint64_t> read_id(std::string_view id_json) noexcept {
    if (id_json.starts_with(kInputIdBegin)) {
      id_json.remove_prefix(kInputIdBegin.size());
      if (!id_json.ends_with('"')) return std::nullopt;
      id_json.remove_suffix(1);
    }
    std::uint64_t number = 0;
    const char* const end = id_json.data() + id_json.size();
    const auto [read_to, error] = std::from_chars(id_json.data(), end, number);
    return error == std::errc{} && read_to == end ? std::optional{number} : std::nullopt;
  }
  [[nodiscard]] bool has_ended() const noexcept { return state == CallState::idle || state == CallState::ended; }

  std::uint64_t generation = 0;       ///< how often it has been lent
  CallState state = CallState::idle;  ///< changed by `enter`
  bool notification = false;
  bool asynchronous = false;
  bool retried = false;
  std::uint8_t resent = 0;             ///< how often, 4 for more
  std::uint8_t attempts = 0;           ///< while nobody provided its method
  std::optional<Error> lost_provider;  ///< why, if it was for that
  std::optional<Error> missing;        ///< -32601, of which the server has not said yet that it is its own
  detail::ErrorClass error_class{};    ///< of `error`
  bool stop_asked = false;
  std::uint64_t id = 0;  ///< of the last time it was sent
  std::chrono::nanoseconds begun{0};
  std::chrono::nanoseconds deadline{0};
  std::chrono::nanoseconds not_before{0};
  ClientConnection* connection = nullptr;  ///< on which it was sent
  std::uint64_t position = 0;              ///< of its message's end in that connection's output
  std::uint32_t index = 0;                 ///< in that message
  bool in_batch = false;                   ///< that is a batch
  ClientCall* next_in_batch = nullptr;     ///< goes into the same message; until it is written
  bool behind_another = false;             ///< goes into the message of the one that is in the list
  ClientCall* next_listed = nullptr;       ///< in the one CallList that it is in
  ClientCall* previous_listed = nullptr;   ///< likewise
  ClientStream* stream = nullptr;          ///< to which its items go
  std::shared_ptr<ClientInput> input;      ///< what it sends towards its handler; null for nothing
  Waiting* waiting = nullptr;              ///< who is told
  std::size_t result_at = 0;               ///< where in `response` the result is
  std::size_t result_size = 0;

  Waiting own_waiting;

 private:
  // What has ended is only delivered; what is sent was queued.
  [[nodiscard]] static constexpr bool may_enter(CallState from, CallState to) noexcept {
    switch (to) {
      case CallState::idle: return true;
      case CallState::queued: return from != CallState::queued && from != CallState::ended;
      case CallState::delayed: return from == CallState::sent || from == CallState::delayed;
      case CallState::sent: return from == CallState::queued;
      case CallState::ended: return from != CallState::ended;
    }
    return false;
  }
};

/// Calls in an order. The links are in the calls, so that nothing here needs memory; a call is in one list at a time.
class CallList {
 public:
  /// The call at hand may be taken out meanwhile.
  class Iterator {
   public:
    explicit Iterator(ClientCall* at) noexcept : at_(at), next_(behind(at)) {}
    ClientCall* operator*() const noexcept { return at_; }
    Iterator& operator++() noexcept {
      at_ = next_;
      next_ = behind(at_);
      return *this;
    }
    bool operator==(const Iterator& other) const noexcept { return at_ == other.at_; }

   private:
    static ClientCall* behind(const ClientCall* call) noexcept { return call != nullptr ? call->next_listed : nullptr; }

    ClientCall* at_;
    ClientCall* next_;
  };
  [[nodiscard]] Iterator begin() const noexcept { return Iterator{first_}; }
  [[nodiscard]] Iterator end() const noexcept { return Iterator{nullptr}; }

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] ClientCall& front() const noexcept { return *first_; }
  [[nodiscard]] ClientCall& back() const noexcept { return *last_; }
  void push_back(ClientCall& call) noexcept {
    call.next_listed = nullptr;
    call.previous_listed = last_;
    (last_ == nullptr ? first_ : last_->next_listed) = &call;
    last_ = &call;
  }
  ClientCall& pop_front() noexcept {
    ClientCall& call = *first_;
    remove(call);
    return call;
  }
  /// The call is in this list.
  void remove(const ClientCall& call) noexcept { set_links(call, call.next_listed, call.previous_listed); }
  /// The other takes the place of the call, which is in this list.
  void replace(const ClientCall& call, ClientCall& other) noexcept {
    other.next_listed = call.next_listed;
    other.previous_listed = call.previous_listed;
    set_links(call, &other, &other);
  }

 private:
  // What stands before and behind the call points to these.
  void set_links(const ClientCall& call, ClientCall* next, ClientCall* previous) noexcept {
    (call.previous_listed == nullptr ? first_ : call.previous_listed->next_listed) = next;
    (call.next_listed == nullptr ? last_ : call.next_listed->previous_listed) = previous;
  }

  ClientCall* first_ = nullptr;
  ClientCall* last_ = nullptr;
};

/// The calls that wait for an answer. An id is the next number whose slot is free, so ids are never used twice, and a
/// call is found by its id alone, in one step.
class CallTable {
 public:
  /// Gives the call its id.
  void insert(ClientCall& call);
  [[nodiscard]] ClientCall* find(std::uint64_t id) const noexcept {
    ClientCall* call = slots_[id & (slots_.size() - 1)];
    return call != nullptr && call->id == id ? call : nullptr;
  }
  void erase(const ClientCall& call) noexcept {
    slots_[call.id & (slots_.size() - 1)] = nullptr;
    --size_;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  std::vector<ClientCall*> slots_ = std::vector<ClientCall*>(64);  // a power of two, at most half of it in use
  std::size_t size_ = 0;
  std::uint64_t last_id_ = 0;
};

}  // namespace wirecall::net
