// wirecall::protobuf, a component of its own (docs/protobuf.md): protobuf messages as parameters and results of any
// method, and protobuf services, generated ones and others, served and called.
#pragma once

#include "wirecall/protobuf/channel.hpp"
#include "wirecall/protobuf/controller.hpp"
#include "wirecall/protobuf/message_json.hpp"
#include "wirecall/protobuf/service.hpp"
