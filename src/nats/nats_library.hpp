// NatsLibrary: libnats, loaded when a broker joins a cluster, so that a process which does not needs none. The
// functions have the names that nats.h gives them. Any thread.
#pragma once

#include <memory>
#include <nats/nats.h>
#include <string>

namespace wirecall::net {

// All functions of libnats that are used: name by name.
#define WIRECALL_NATS_FUNCTIONS(X)           \
  X(natsConnection_Buffered)                 \
  X(natsConnection_Close)                    \
  X(natsConnection_Connect)                  \
  X(natsConnection_Destroy)                  \
  X(natsConnection_GetLastError)             \
  X(natsConnection_GetMaxPayload)            \
  X(natsConnection_ProcessReadEvent)         \
  X(natsConnection_ProcessWriteEvent)        \
  X(natsConnection_Publish)                  \
  X(natsConnection_PublishMsg)               \
  X(natsConnection_PublishRequest)           \
  X(natsConnection_QueueSubscribeSync)       \
  X(natsConnection_Status)                   \
  X(natsConnection_Subscribe)                \
  X(natsConnection_SubscribeSync)            \
  X(natsMsgHeader_Get)                       \
  X(natsMsgHeader_Set)                       \
  X(natsMsg_Create)                          \
  X(natsMsg_Destroy)                         \
  X(natsMsg_GetData)                         \
  X(natsMsg_GetDataLength)                   \
  X(natsMsg_GetReply)                        \
  X(natsMsg_GetSubject)                      \
  X(natsMsg_IsNoResponders)                  \
  X(natsOptions_Create)                      \
  X(natsOptions_Destroy)                     \
  X(natsOptions_LoadCATrustedCertificates)   \
  X(natsOptions_LoadCertificatesChain)       \
  X(natsOptions_SetClosedCB)                 \
  X(natsOptions_SetDisconnectedCB)           \
  X(natsOptions_SetErrorHandler)             \
  X(natsOptions_SetEventLoop)                \
  X(natsOptions_SetMaxReconnect)             \
  X(natsOptions_SetNKeyFromSeed)             \
  X(natsOptions_SetName)                     \
  X(natsOptions_SetNoEcho)                   \
  X(natsOptions_SetPingInterval)             \
  X(natsOptions_SetReconnectBufSize)         \
  X(natsOptions_SetReconnectJitter)          \
  X(natsOptions_SetReconnectWait)            \
  X(natsOptions_SetReconnectedCB)            \
  X(natsOptions_SetSecure)                   \
  X(natsOptions_SetSendAsap)                 \
  X(natsOptions_SetServers)                  \
  X(natsOptions_SetTimeout)                  \
  X(natsOptions_SetUserCredentialsFromFiles) \
  X(natsStatus_GetText)                      \
  X(natsSubscription_Destroy)                \
  X(natsSubscription_DrainCompletionStatus)  \
  X(natsSubscription_DrainTimeout)           \
  X(natsSubscription_NextMsg)                \
  X(natsSubscription_SetPendingLimits)       \
  X(natsSubscription_Unsubscribe)            \
  X(nats_GetLastError)

class NatsLibrary {
 public:
  /// Loads it once for the process. Throws std::runtime_error that says what is missing.
  [[nodiscard]] static const NatsLibrary& get();

#define WIRECALL_NATS_MEMBER(name) decltype(&::name) name = nullptr;
  WIRECALL_NATS_FUNCTIONS(WIRECALL_NATS_MEMBER)
#undef WIRECALL_NATS_MEMBER

 private:
  NatsLibrary();
};

}  // namespace wirecall::net
