// RelayedCalls: the calls that a broker has handed on, or keeps until their provider is free, each in a slot. A slot's
// number and generation are the id by which the provider is asked, so that an answer finds its call without a search,
// and one that comes late or twice finds none: a generation comes again after 2^31 uses of its slot.
//
// Each slot is in up to three lists, its caller's, its provider's and that of its deadline; their links are numbers of
// slots. The table grows by blocks and never shrinks below what was once in use at the same time.
// One thread. Pure: time is what it is told.
#pragma once

#include <array>
#include <new>
#include <set>
#include <tuple>

#include "broker/relayed_credit.hpp"
#include "rpc/dispatcher.hpp"
#include "rpc/load_bytes.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/call.hpp"

namespace wirecall::broker {

class CallAllResults;
class Peer;
class RequestToAll;
struct Provider;

using SlotNumber = std::uint32_t;
inline constexpr SlotNumber kNoSlot = ~SlotNumber{0};

/// A place in a list of slots.
struct Links {
  SlotNumber before = kNoSlot;
  SlotNumber after = kNoSlot;
};

/// Whose outcome is one of several: its index among them.
struct CallAllEntry {
  std::shared_ptr<CallAllResults> results;  ///< null for none
  std::uint32_t index = 0;
};

/// A call that was asked for its results as they come: its provider sends them, its caller gives credit.
struct RelayedStream : RelayedCredit {
  std::string token;            ///< JSON text, of a caller that asked for LSP's $/progress; empty for rpc.item
  bool without_credit = false;  ///< the provider sends $/progress, and does not wait
};

/// The stream that a call brings towards its handler: its caller sends it, its provider gives credit.
struct RelayedInput : RelayedCredit {
  bool ended = false;  ///< by its caller
};

/// The text of a request that is kept, and counted with those of its caller's connection.
class KeptRequest {
 public:
  /// Throws std::bad_alloc.
  void keep(std::string_view text, const std::shared_ptr<rpc::PeerLoad>& load) {
    text_.append(text);
    held_.set(load, text_.size());
  }
  /// It does not count any more; it is about to be released.
  void uncount() noexcept { held_.release(); }
  void release() noexcept {
    held_.release();
    text_.release();
  }
  [[nodiscard]] bool empty() const noexcept { return text_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return text_.size(); }
  [[nodiscard]] std::string_view padded() { return text_.padded(); }

 private:
  Buffer text_;
  rpc::HeldBytes held_;
};

/// Of a call that subscribes to a method: who is sent the events, and behind which answer.
struct Subscribing {
  Peer* caller = nullptr;  ///< it is there as long as the call is wanted
  std::shared_ptr<rpc::CallerLink> link;
};

/// What few calls need.
struct RelayExtras {
  ReplySink sink;         ///< answers a call that is no message of its own: in a batch, by HTTP
  CallAllEntry call_all;  ///< the same, of rpc.call_all
  Subscribing subscribing;
  rpc::HeldBytes id;                           ///< of an id of more than rpc::kBytesUncounted
  std::shared_ptr<const RequestToAll> to_all;  ///< the request of rpc.call_all, until it has been sent
  KeptRequest request;                         ///< as it came: of a call that waits, or that may be made again
  const Peer* asked_by = nullptr;  ///< with it: whose turn it is to wait; to be compared, since it may have gone
  std::uint64_t asker = 0;         ///< the same: its Peer::number
};

struct RelayedCall {
  enum class State : std::uint8_t {
    unused,
    waiting,  ///< for its provider to be free
    sent,     ///< to its provider
    given_up  ///< nobody waits for the answer, but the provider is still at work on it
  };

  static constexpr std::size_t kIdBytesInside = 24;

  /// Nobody asks for it any more.
  void forget_id() noexcept {
    long_id.reset();
    id_bytes = 0;
  }
  [[nodiscard]] std::string_view id() const noexcept {
    return long_id ? std::string_view{long_id.get(), id_bytes} : std::string_view{short_id.data(), id_bytes};
  }

  [[nodiscard]] bool is_subscribing() const noexcept { return extras && extras->subscribing.caller != nullptr; }

  Peer* caller = nullptr;  ///< who is sent the answer; null where the extras say who is, and when given up
  Provider* provider = nullptr;
  std::chrono::nanoseconds began{};
  std::chrono::nanoseconds deadline{};  ///< kNoDeadline for none; of a stream, its next item's
  std::chrono::nanoseconds ends{};      ///< of a stream: when all of it has to have come
  Links of_caller;
  Links of_provider;
  Links of_deadline;
  std::uint32_t generation = 0;
  std::uint32_t id_bytes = 0;
  State state = State::unused;
  MessageForm form;            ///< of what the caller is sent
  bool timed : 1 = false;      ///< it is in the list of its deadline
  bool addressed : 1 = false;  ///< to that very provider
  bool retried : 1 = false;    ///< has been made again already
  bool asked : 1 = false;      ///< a provider may have got it before, which has gone
  bool untaken : 1 = false;    ///< it was sent to another node, which has not got it
  std::array<char, kIdBytesInside> short_id;
  std::unique_ptr<char[]> long_id;        ///< of an id that is longer
  std::unique_ptr<RelayedStream> stream;  ///< null where all results are one
  std::unique_ptr<RelayedInput> input;    ///< null where its request is all that its caller sends
  std::unique_ptr<RelayExtras> extras;
};

class RelayedCalls {
 public:
  /// A list of slots, oldest first.
  struct List {
    SlotNumber first = kNoSlot;
    SlotNumber last = kNoSlot;
    [[nodiscard]] bool empty() const noexcept { return first == kNoSlot; }
  };

  RelayedCalls();
  RelayedCalls(RelayedCalls&&) = delete;

  [[nodiscard]] RelayedCall& operator[](SlotNumber slot) noexcept {
    return blocks_[slot / kBlockSlots][slot % kBlockSlots];
  }

  /// A slot for a call with that id. Throws std::bad_alloc; nothing for more calls than there are numbers.
  [[nodiscard]] std::optional<SlotNumber> take(std::string_view id_json);
  /// Its call is over; it is in no list any more.
  void give_back(SlotNumber slot) noexcept;

  /// The id by which a provider is asked, in decimal digits.
  [[nodiscard]] std::uint64_t number_of(SlotNumber slot) noexcept {
    return std::uint64_t{(*this)[slot].generation} << kSlotBits | slot;
  }
  /// The slot of a call that was asked by that id and is not over, a string where it has an input (ProviderId); kNoSlot
  /// for none.
  [[nodiscard]] SlotNumber find(std::string_view id_json) noexcept;
  /// The same by the number alone.
  [[nodiscard]] SlotNumber find_number(std::string_view digits) noexcept;

  void append(List& list, Links RelayedCall::* links, SlotNumber slot) noexcept;
  void remove(List& list, Links RelayedCall::* links, SlotNumber slot) noexcept;

  /// Whether so many are in the list; of a long one that is not counted. For assertions.
  [[nodiscard]] bool is_count(const List& list, Links RelayedCall::* links, std::size_t count) noexcept;

  [[nodiscard]] std::size_t in_use() const noexcept { return in_use_; }

 private:
  static constexpr unsigned kSlotBits = 22;
  static constexpr std::uint32_t kGenerationMax = (std::uint32_t{1} << 31) - 1;  // ids stay below 2^53: exact anywhere
  static constexpr std::size_t kBlockSlots = 256;
  using Block = std::unique_ptr<RelayedCall[]>;

  std::vector<Block> blocks_;
  SlotNumber free_ = kNoSlot;  // linked by of_caller.after
  std::size_t in_use_ = 0;
};

/// The calls of one caller by its own ids, for cancelling and credit. Few callers do either, and most have few calls on
/// their way, among which a look at each is enough: so there is nothing here until it is asked for.
class CallsById {
 public:
  /// The first of the calls with that id, streams before others; kNoSlot for none. `list` is all of the caller's calls.
  [[nodiscard]] SlotNumber find(std::string_view id_json, RelayedCalls& calls, const RelayedCalls::List& list) {
    if (!index_) {
      auto made = std::make_unique<Index>();
      for (SlotNumber slot = list.first; slot != kNoSlot; slot = calls[slot].of_caller.after)
        made->insert(key(calls[slot], slot));
      index_ = std::move(made);
    }
    const auto found = index_->lower_bound({id_json, false, 0});
    return found != index_->end() && std::get<0>(*found) == id_json ? std::get<2>(*found) : kNoSlot;
  }
  void add(const RelayedCall& call, SlotNumber slot) noexcept {
    if (!index_) [[likely]]
      return;
    try {
      index_->insert(key(call, slot));
    } catch (const std::bad_alloc&) {
      index_.reset();  // and made anew when it is asked for
    }
  }
  void remove(const RelayedCall& call, SlotNumber slot) noexcept {
    if (!index_) [[likely]]
      return;
    index_->erase(key(call, slot));
    if (index_->empty()) index_.reset();
  }

 private:
  using Key = std::tuple<std::string_view, bool, SlotNumber>;  // the id, as the slot has it; whether it is no stream
  using Index = std::set<Key>;
  [[nodiscard]] static Key key(const RelayedCall& call, SlotNumber slot) noexcept {
    return {call.id(), !call.stream && !call.input, slot};
  }

  std::unique_ptr<Index> index_;
};

}  // namespace wirecall::broker
