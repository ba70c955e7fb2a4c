// Single include of napi.h, with settings.
#pragma once
#define NAPI_VERSION 8
#define NODE_ADDON_API_CPP_EXCEPTIONS
#define NODE_ADDON_API_DISABLE_DEPRECATED
#define NODE_ADDON_API_REQUIRE_BASIC_FINALIZERS
// Without this, terminating a worker thread while native work is in progress would abort the process.
#define NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS
#include <napi.h>
