// What the methods of the durable store share: how they read params, and how they answer what comes of it. One thread.
#pragma once

#include "broker/errors.hpp"
#include "broker/peer.hpp"
#include "durable/store.hpp"
#include "rpc/reserved_params.hpp"
#include "wirecall/call.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::broker {

// What a read of the store costs whoever asks for it, beside what waits for its turn at the disk.
constexpr std::size_t kStepsOfRead = 16;

/// The same, of answering with so many rows that hold so many bytes of params and results.
inline void charge_rows(const Peer* peer, std::size_t rows, std::size_t bytes = 0) {
  constexpr std::size_t kRowsOfStep = 2;
  if (peer != nullptr) peer->sink().charge(rows / kRowsOfStep + bytes / rpc::Share::kBytesOfStep);
}

// Before an event, or a job, is tried again for the first time.
constexpr std::chrono::milliseconds kFirstEventPause{100};
constexpr std::chrono::milliseconds kFirstJobPause{1000};

/// The pause after a delivery that has failed, the first or a later one, which doubles with each.
[[nodiscard]] constexpr std::chrono::milliseconds pause_after(std::uint32_t deliveries, std::chrono::milliseconds first,
                                                              std::chrono::milliseconds longest) {
  constexpr std::uint32_t kDoublingsMax = 20;
  return std::min(first * (1U << std::min(std::max(deliveries, 1U) - 1, kDoublingsMax)), longest);
}

/// What a call ends with that the store has not done. Throws std::bad_alloc.
[[nodiscard]] Error error_of(const durable::Failure& failure);
/// Of a call that needs a store where there is none.
[[nodiscard]] Error needs_store();

/// Answers with a value, in the encoding of the call.
template <class T>
void answer(ReplySink& sink, const T& value) {
  if (Writer* const writer = sink.begin_result()) encode(*writer, value);
  sink.end_result();
}

/// A value of params as JSON text. Throws -32602 where it has none.
[[nodiscard]] std::string json_of(Reader& reader, std::string_view name, const rpc::RawValue& value);

/// The params to be kept for later: JSON text, empty for none.
template <std::size_t N>
[[nodiscard]] std::string kept_params(Reader& reader, const rpc::ReservedParams<N>& params, std::size_t at) {
  const rpc::RawValue* const given = params.value(at);
  if (given == nullptr) return {};
  if (given->kind != ValueKind::array && given->kind != ValueKind::object)
    params.refuse("params", params.find(at), "array or object");
  return json_of(reader, "params", *given);
}

/// Of an error, what is kept: all of it, or its code where it is large. `whose` begins with a capital.
[[nodiscard]] std::string kept_error(std::string error_json, std::string_view whose);

/// On whose account a peer's events and jobs are: its principal's, or that of where it comes from.
[[nodiscard]] inline std::string account_of(const Peer& peer) {
  const auto& account = peer.load().calls.account();
  return account ? account->name : std::string{};
}

/// Whose turn it is when a peer reads; none of consumers, which have one of their own together.
[[nodiscard]] inline std::string reader_of(const Peer& peer) { return "of " + account_of(peer); }

/// Whether what another peer may have asked for is shown to this one: to whom everybody is the same, or to an admin.
[[nodiscard]] inline bool sees_all(const Peer& peer) { return peer.principal == nullptr || peer.principal->admin; }

/// An id of a message of the peer's, by which it is known when it comes again; empty for none. Another principal's
/// message of that id is another one: nobody says in advance what others will say.
template <std::size_t N>
[[nodiscard]] std::string msg_id_of(const Peer& peer, const rpc::ReservedParams<N>& params, std::size_t at) {
  constexpr std::size_t kBytesMax = 255;
  std::string id = params.template as<std::string>(at).value_or(std::string{});
  if (id.size() > kBytesMax) params.refuse("msg_id", params.find(at), "string of 255 bytes at most");
  if (!id.empty() && peer.principal != nullptr) id.insert(0, to_json(peer.principal->name));
  return id;
}

/// A count or a time within its range; `standard` where it was not given.
template <std::size_t N>
[[nodiscard]] std::uint32_t number_of(const rpc::ReservedParams<N>& params, std::string_view name, std::size_t at,
                                      std::uint32_t standard, std::uint32_t min, std::uint32_t max) {
  const std::optional<std::uint64_t> given = params.template as<std::uint64_t>(at);
  if (!given) return standard;
  if (*given < min || *given > max)
    params.refuse(name, params.find(at), "number from " + std::to_string(min) + " to " + std::to_string(max));
  return static_cast<std::uint32_t>(*given);
}

}  // namespace wirecall::broker
