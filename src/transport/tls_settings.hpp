// What a TlsServerContext and a TlsClientContext are made of: paths, and what is asked of the peer. Values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wirecall::transport {

/// Whether a client shows a certificate.
enum class ClientCertificate : std::uint8_t { none, optional, required };

/// Paths of PEM files.
struct TlsFiles {
  std::string certificate;  ///< and the chain behind it
  std::string key;
};

struct TlsServerSettings {
  std::vector<TlsFiles> identities = {};  ///< chosen by the name that a client asks for; the first for all other names
  bool self_signed = false;               ///< with no files, a certificate of this machine's names that is made anew
  ClientCertificate client = ClientCertificate::none;
  std::string client_ca = {};   ///< of whom clients' certificates are accepted; PEM
  std::string client_crl = {};  ///< revocation lists, of each authority in a chain; PEM, empty for none
};

struct TlsClientSettings {
  std::string cafile = {};  ///< PEM; empty for the system's authorities
  TlsFiles own = {};        ///< what is shown to a server that asks; empty for nothing
  std::string pin = {};  ///< "sha256:" and the fingerprint of the server's certificate, instead of an authority's word
  bool verify = true;
};

}  // namespace wirecall::transport
