/* What tests do less of under a sanitizer, which makes everything some four times as slow. */
#ifndef CONVSCHED_TESTS_SANITIZED_H_
#define CONVSCHED_TESTS_SANITIZED_H_

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CS_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CS_TEST_SANITIZED 1
#endif
#endif
#ifndef CS_TEST_SANITIZED
#define CS_TEST_SANITIZED 0
#endif

/* Hundreds of megabytes that one thread writes take minutes under ThreadSanitizer. */
#if defined(__SANITIZE_THREAD__)
#define CS_TEST_THREADS_SANITIZED 1
#else
#define CS_TEST_THREADS_SANITIZED 0
#endif

/* How many random cases run: there a quarter, the first ones of the same sequence. */
#define RANDOM_CASES(all) (CS_TEST_SANITIZED ? (all) / 4 : (all))

#endif
