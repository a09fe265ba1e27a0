// SPDX-License-Identifier: Apache-2.0
//
// epp/template.h — which image and which main process a `template` of the SDK means. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontends/epp/config.h"

namespace bridge::epp {

// Aliases first, then "base" (or nothing) for the default image, else an image reference as it is.
std::string ImageFor(std::string_view template_name, const CreateSettings& settings);

// The setting if there is one; the image's own script for a code interpreter, which does not work
// without it; else empty: the bridge's default, a process that does nothing and never ends.
std::vector<std::string> EntrypointFor(std::string_view image, const CreateSettings& settings);

}  // namespace bridge::epp
