// The one include of napi.h, with its settings.
#pragma once
#define NAPI_VERSION 8
#define NODE_ADDON_API_CPP_EXCEPTIONS
#define NODE_ADDON_API_DISABLE_DEPRECATED
#define NODE_ADDON_API_REQUIRE_BASIC_FINALIZERS
// Ending a worker thread while native work is under way would otherwise abort the whole process.
#define NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS
#include <napi.h>
