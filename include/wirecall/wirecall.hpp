// All of wirecall. A program that wants less of it, or compiles faster without sockets, includes what it uses.
#pragma once

// The core, without I/O: wirecall::core.
#include "wirecall/bytes.hpp"
#include "wirecall/call.hpp"
#include "wirecall/caller.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/context.hpp"
#include "wirecall/error.hpp"
#include "wirecall/input_stream.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/log.hpp"
#include "wirecall/message.hpp"
#include "wirecall/middleware.hpp"
#include "wirecall/principal.hpp"  // Principal
#include "wirecall/reflect.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/schema.hpp"
#include "wirecall/stats.hpp"
#include "wirecall/stream.hpp"
#include "wirecall/task.hpp"
#include "wirecall/value.hpp"

// Over the network: wirecall::wirecall.
#include "wirecall/batch.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/client.hpp"
#include "wirecall/http.hpp"
#include "wirecall/loop.hpp"
#include "wirecall/provider.hpp"
#include "wirecall/request.hpp"
#include "wirecall/result_stream.hpp"
#include "wirecall/server.hpp"
#include "wirecall/subscription.hpp"
#include "wirecall/transport.hpp"
#include "wirecall/watch.hpp"
