// See tls_connect.hpp. The handshake is made on the socket, record by record, so that nothing is read which follows it:
// that is for the stream.
#include "transport/tls_connect.hpp"

#include "transport/blocking_socket.hpp"
#include "transport/openssl_use.hpp"
#include "transport/setup.hpp"
#include "transport/socket.hpp"
#include "transport/tls_stream.hpp"

namespace wirecall::transport {
namespace {

constexpr std::size_t kRecordHeadBytes = 5;
constexpr unsigned char kRecordTypeMin = 20;
constexpr unsigned char kRecordTypeMax = 24;
constexpr unsigned char kMajorVersion = 3;

// A connection whose handshake is done.
class AgreedTls final : public UnattachedStream {
 public:
  AgreedTls(Descriptor socket, std::unique_ptr<TlsSession> session)
      : socket_(std::move(socket)), session_(std::move(session)) {}

  std::unique_ptr<ByteStream> attach(Loop& loop) override {
    auto stream = std::make_unique<SocketStream>(loop, socket_.get());
    static_cast<void>(socket_.release());
    return std::make_unique<TlsStream>(loop, std::move(stream), std::move(session_));
  }
  [[nodiscard]] int descriptor() const noexcept override { return socket_.get(); }

 private:
  Descriptor socket_;
  std::unique_ptr<TlsSession> session_;
};

// Within an OpensslUse.
class Handshake {
 public:
  Handshake(const Endpoint& endpoint, const BlockingSocket& socket, TlsSession& session)
      : endpoint_(endpoint), socket_(socket), session_(session) {}

  void run() {
    Buffer output;
    session_.start(output);
    while (session_.state() == TlsSession::State::handshaking) {
      send(output);
      Buffer record;
      receive(record, kRecordHeadBytes);
      receive(record, rest_of(record));
      Buffer plaintext;
      session_.receive({record.data(), record.size()}, plaintext, output);
    }
    if (session_.state() == TlsSession::State::open) return send(output);
    try {
      send(output);  // the alert
    } catch (const std::runtime_error&) {
      // What has failed first is told.
    }
    throw failure("cannot connect to", endpoint_, session_.failure(), cure_of(session_.fault()));
  }

 private:
  // What follows a record's head. Nothing does where that is no record: what is no TLS may be waited for in vain.
  [[nodiscard]] static std::size_t rest_of(const Buffer& record) noexcept {
    const auto* const head = reinterpret_cast<const unsigned char*>(record.data());
    const bool is_record = head[0] >= kRecordTypeMin && head[0] <= kRecordTypeMax && head[1] == kMajorVersion;
    return is_record ? static_cast<std::size_t>(head[3]) << 8 | head[4] : 0;
  }

  void send(Buffer& output) {
    const OpensslUse::Pause pause;
    socket_.send(output.view());
    output.clear();
  }

  void receive(Buffer& record, std::size_t bytes) {
    const OpensslUse::Pause pause;
    char* to = record.reserve(bytes);
    for (const char* const end = to + bytes; to != end;) {
      const std::size_t received = socket_.receive(to, static_cast<std::size_t>(end - to));
      if (received == 0) {
        throw failure("cannot connect to", endpoint_, "the server has closed the connection in the TLS handshake",
                      "check that a server listens there that speaks TLS");
      }
      to += received;
      record.grow(received);
    }
  }

  const Endpoint& endpoint_;
  const BlockingSocket& socket_;
  TlsSession& session_;
};

}  // namespace

std::string_view cure_of(TlsFault fault) noexcept {
  switch (fault) {
    case TlsFault::alert:
      return "the server has refused this client: see its log; it may want a certificate, or another one";
    case TlsFault::authority:
      return "name the authority that has signed it with cafile, or give its fingerprint as tls.pin";
    case TlsFault::name: return "connect to a name that its certificate has, or give its fingerprint as tls.pin";
    case TlsFault::validity: return "the server needs another certificate; or check this machine's clock";
    case TlsFault::pin: return "make sure that this is the server, and give its fingerprint as tls.pin";
    case TlsFault::other: break;
  }
  return "check that a server listens there that speaks TLS";
}

PendingConnection encrypt(int socket, const Endpoint& endpoint, std::chrono::milliseconds timeout,
                          const std::shared_ptr<const TlsClientContext>& context) {
  Descriptor owned{socket};
  const OpensslUse use;
  auto session = std::make_unique<TlsSession>(context, endpoint);
  constexpr BlockingSocket::Silence kSilence{
      .cause = "the server has accepted the connection, and did not answer the TLS handshake in time",
      .cure = "check that a server listens there that speaks TLS"};
  const BlockingSocket blocking{socket, endpoint, std::chrono::steady_clock::now() + timeout, kSilence};
  Handshake{endpoint, blocking, *session}.run();
  return PendingConnection{std::make_unique<AgreedTls>(std::move(owned), std::move(session))};
}

}  // namespace wirecall::transport
