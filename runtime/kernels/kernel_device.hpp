// Include this for KernelDevice: the class and the bodies of its operators.
#pragma once

#include "runtime/kernels/kernel_device_attention.hpp"
#include "runtime/kernels/kernel_device_class.hpp"
#include "runtime/kernels/kernel_device_fp8.hpp"
#include "runtime/kernels/kernel_device_linear.hpp"
#include "runtime/kernels/kernel_device_pointwise.hpp"
