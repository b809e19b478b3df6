// What the methods of durable topics share: how their params name consumers and topics, and from whom they come. One
// thread.
#pragma once

#include "broker/durable_answers.hpp"

namespace wirecall::broker {

inline constexpr std::array<std::string_view, 9> kSubscribeNames{
    "topic", "last", "group", "echo", "durable", "start", "ack_wait_ms", "max_deliver", "max_in_flight"};
inline constexpr std::array<std::string_view, 2> kUnsubscribeNames{"topic", "durable"};

/// By which answers are known to be those of a consumer: no character of it is written otherwise in JSON.
[[nodiscard]] inline bool is_consumer_name(std::string_view name) noexcept {
  constexpr std::size_t kBytesMax = 64;
  const auto may_be = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return !name.empty() && name.size() <= kBytesMax && std::ranges::all_of(name, may_be);
}

template <std::size_t N>
[[nodiscard]] std::string consumer_name(const rpc::ReservedParams<N>& params, std::string_view name, std::size_t at) {
  std::optional<std::string> given = params.template as<std::string>(at);
  if (!given || !is_consumer_name(*given))
    params.refuse(name, params.find(at), "name of 1 to 64 ASCII letters, digits, - and _");
  return *std::move(given);
}

template <std::size_t N>
[[nodiscard]] std::string pattern_of(const rpc::ReservedParams<N>& params) {
  std::optional<std::string> topic = params.template as<std::string>(0);
  if (!topic || !is_pattern(*topic))
    params.refuse("topic", params.find(0),
                  "words between dots, of which * stands for one and > at the end for the rest");
  return *std::move(topic);
}

/// Who calls, if that is a connection; if `registers`, one whose subscriptions hold until it goes. Throws.
[[nodiscard]] inline Peer& require_connection(Call& call, bool registers) {
  Peer& caller = caller_of(call);
  const rpc::PeerCapabilities can = caller.sink().capabilities();
  if (can.datagrams || (registers && !can.registration))
    throw Error::with_data(ErrorCode::invalid_request, R"({"reason":"needs_connection"})");
  if (registers && caller.has_ended()) throw has_ended();
  return caller;
}

}  // namespace wirecall::broker
