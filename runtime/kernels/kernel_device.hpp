// KernelDevice, with the bodies of its operators.
#pragma once

#include "runtime/kernels/kernel_device_attention.hpp"
#include "runtime/kernels/kernel_device_declared.hpp"
#include "runtime/kernels/kernel_device_rest.hpp"
