/* What a shared library exports. A static one, whose package defines MXJIT_STATIC, is nobody else's to see.
 */
#ifndef MXJIT_EXPORT_H
#define MXJIT_EXPORT_H

#if defined(MXJIT_STATIC) || !defined(__GNUC__)
#define MXJIT_API
#else
#define MXJIT_API __attribute__((visibility("default")))
#endif

#endif
