// See sessions.hpp.
#include "broker/sessions.hpp"

#include <charconv>
#include <system_error>

#include "message/own_error.hpp"

namespace wirecall::broker {

using std::chrono::nanoseconds;

// ---- who was kicked ----

void KickedClients::add(const Client& client, nanoseconds until) {
  if (kicked_.size() == kClientsMax) kicked_.pop_front();
  kicked_.push_back({.name = std::string{client.name},
                     .principal = std::string{client.principal},
                     .session = client.session,
                     .until = until});
}

nanoseconds KickedClients::left(const Client& client, nanoseconds now) noexcept {
  // All have been given the same time.
  while (!kicked_.empty() && kicked_.front().until <= now) kicked_.pop_front();
  const auto is_it = [&](const Kicked& kicked) {
    if (client.session != 0 && client.session == kicked.session) return true;
    return !client.name.empty() && client.name == kicked.name && client.principal == kicked.principal;
  };
  const auto last = std::find_if(kicked_.rbegin(), kicked_.rend(), is_it);
  return last != kicked_.rend() ? last->until - now : nanoseconds{0};
}

// ---- secrets ----

namespace {

// So long after it began a session can be resumed whose connection has gone.
constexpr std::chrono::hours kSessionLifetime{24};
constexpr std::size_t kDigits = 16;  // of each of the three numbers that a secret consists of

std::string hexadecimal(std::uint64_t number) {
  std::array<char, kDigits> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + kDigits, number, 16).ptr;
  const auto size = static_cast<std::size_t>(end - digits.data());
  return std::string(kDigits - size, '0') + std::string{digits.data(), size};
}

struct SipState {
  std::uint64_t v0, v1, v2, v3;

  void round() noexcept {
    v0 += v1;
    v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1;
    v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  }
  void absorb(std::uint64_t word) noexcept {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

std::uint64_t little_endian(const char* bytes, std::size_t size) noexcept {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < size; ++i) word |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << 8 * i;
  return word;
}

}  // namespace

std::uint64_t sip_hash(std::uint64_t key0, std::uint64_t key1, std::string_view text) noexcept {
  SipState state{key0 ^ 0x736f6d6570736575, key1 ^ 0x646f72616e646f6d, key0 ^ 0x6c7967656e657261,
                 key1 ^ 0x7465646279746573};
  std::size_t at = 0;
  for (; text.size() - at >= 8; at += 8) state.absorb(little_endian(text.data() + at, 8));
  state.absorb(std::uint64_t{text.size() & 0xFF} << 56 | little_endian(text.data() + at, text.size() - at));
  state.v2 ^= 0xFF;
  for (int i = 0; i < 4; ++i) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

SessionKeys::SessionKeys() : key_{} {
  std::random_device random;
  for (std::uint64_t& word : key_) word = std::uint64_t{random()} << 32 | random();
}

std::uint64_t SessionKeys::begin(nanoseconds now) noexcept {
  const auto milliseconds = static_cast<std::uint64_t>(std::chrono::floor<std::chrono::milliseconds>(now).count());
  last_ = std::max(last_ + 1, milliseconds << kCountBits);
  return last_;
}

// The same secret given twice would let one client take the other's place.
SessionKeys::Handed SessionKeys::hand_over(nanoseconds now) const noexcept {
  constexpr std::uint64_t kApart = std::uint64_t{1000} << kCountBits;
  const auto later = std::chrono::floor<std::chrono::milliseconds>(now + std::chrono::hours{1}).count();
  return {.key = key_, .last = std::max(last_ + kApart, static_cast<std::uint64_t>(later) << kCountBits)};
}

nanoseconds SessionKeys::began(std::uint64_t number) noexcept {
  return std::chrono::milliseconds{static_cast<std::int64_t>(number >> kCountBits)};
}

std::string SessionKeys::secret_of(std::uint64_t number, std::string_view principal) const {
  const std::string begin = hexadecimal(number);
  const std::string text = begin + std::string{principal};
  return begin + hexadecimal(sip_hash(key_[0], key_[1], text)) + hexadecimal(sip_hash(key_[2], key_[3], text));
}

std::optional<std::uint64_t> SessionKeys::find(std::string_view secret, std::string_view principal) const {
  if (secret.size() != 3 * kDigits) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(secret.data(), secret.data() + kDigits, number, 16);
  if (error != std::errc{} || end != secret.data() + kDigits) return std::nullopt;
  if (!rpc::same_secret(secret_of(number, principal), secret)) return std::nullopt;
  return number;
}

// ---- rpc.hello and rpc.kick ----

rpc::HelloResult Sessions::hello(Peer& peer, std::string_view name, std::string_view resume) {
  if (name.size() > kNameBytesMax) {
    throw Error::with_data(ErrorCode::invalid_params, R"({"loc":["name"],"expected":"string of 1 to 255 bytes"})");
  }
  refuse_kicked(peer, name, resume);
  if (!resume.empty()) take_over(peer, name, resume);
  if (!name.empty()) give_name(peer, name);
  if (peer.session == 0) {
    peer.session = peer.number;
    context_->log.greeted(peer);
  }
  return {.name = peer.name, .session = keys_.secret_of(peer.session, peer.principal_name())};
}

// Whoever was kicked is answered when it may come again, and its connection closed.
void Sessions::refuse_kicked(Peer& peer, std::string_view name, std::string_view resume) {
  const std::string_view principal = peer.principal_name();
  const std::uint64_t session = resume.empty() ? 0 : keys_.find(resume, principal).value_or(0);
  const nanoseconds left = kicked_.left({.name = name, .principal = principal, .session = session}, context_->now());
  if (left == nanoseconds{0}) return;
  peer.sink().close();
  throw message::make(
      {.code = ErrorCode::forbidden,
       .reason = "an administrator has ended this client, which is not let in again for a time",
       .delivered = "no",
       .retry_after_ms = static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(left).count())});
}

// The connection of that session, if it is still there, is replaced by this peer's: its calls end, and its name goes on
// without anybody being told that it went.
void Sessions::take_over(Peer& peer, std::string_view name, std::string_view resume) {
  const auto session = keys_.find(resume, peer.principal_name());
  Peer* const known = session ? context_->peers.find(*session) : nullptr;
  Peer* const found = known != nullptr && known->session == *session ? known : nullptr;
  const bool expired = session && found == nullptr && context_->now() - SessionKeys::began(*session) > kSessionLifetime;
  if (!session || expired) {
    throw message::make(ErrorCode::unauthenticated, "there is no such session", "no");
  }
  if (found == nullptr || found == &peer) return;
  Peer& old = *found;
  relay_->end_calls(old, nullptr);
  departures_->end_peer(old);
  old.session = 0;
  old.took_part = false;  // it goes on as the other one
  if (!old.name.empty() && peer.name.empty() && (name.empty() || name == old.name)) {
    context_->peers.hand_name(old, peer);
  } else if (!old.name.empty()) {
    context_->peers.take_name(old);
    name_changed(old.name);
    announcer_->announce(old, "rpc.client.left");
    old.name.clear();
  }
  context_->log.resumed(peer);
  old.sink().close();
}

void Sessions::give_name(Peer& peer, std::string_view name) {
  if (const Peer* const known = context_->peers.find(name)) {
    if (known == &peer) return;
    if (!rpc::same_principal(known->principal, peer.principal))
      throw conflict("a client of another principal has that name");
  }
  std::string given = context_->peers.free_name(peer, name);
  if (given == peer.name) return;
  const bool joins = peer.name.empty();
  const std::string former = peer.name;
  context_->peers.rename(peer, std::move(given));
  if (!joins) name_changed(former);
  name_changed(peer.name);
  if (joins) announcer_->announce(peer, "rpc.client.joined");
}

bool Sessions::kick(const Peer& by, std::string_view name) {
  Peer* const found = context_->peers.find(name);
  if (found == nullptr) return false;
  context_->log.kicked(by, name);
  Peer& peer = *found;
  if (context_->settings.kick_time > nanoseconds{0}) {
    kicked_.add({.name = name, .principal = peer.principal_name(), .session = peer.session},
                context_->now() + context_->settings.kick_time);
  }
  peer.sink().close();
  return true;
}

void Sessions::end(Peer& peer) noexcept {
  if (!peer.name.empty()) {
    context_->peers.take_name(peer);
    name_changed(peer.name);
    announcer_->announce(peer, "rpc.client.left");
  }
  context_->peers.remove(peer);
}

void Sessions::name_changed(std::string_view name) noexcept {
  if (context_->realm) context_->realm->client_changed(name);
}

}  // namespace wirecall::broker
