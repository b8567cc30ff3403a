//! The hot path: a delivery that arrives whole allocates nothing.

use super::framed_rows;
use super::record::{Step, messages, record, replay};
use model::Event;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Deliveries in a row that must not allocate.
const DELIVERIES: usize = 100;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, counting for each thread: other tests do not disturb.
struct Counting;

// SAFETY: everything is handed to the system's allocator as it came. The counter is a constant
// thread-local without a destructor, so that touching it neither allocates nor fails.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn allocations_are_counted() {
    let before = ALLOCATIONS.get();
    let mut bytes = std::hint::black_box(Vec::<u8>::with_capacity(8));
    bytes.reserve(1_000);
    assert_eq!(ALLOCATIONS.get() - before, 2, "{}", bytes.capacity());
}

#[test]
fn deliveries_allocate_nothing() {
    for row in framed_rows() {
        let name = row.protocol.facts().name;
        let good = record(&row);
        let mut found = 0;
        for place in messages(&good.steps) {
            let mut rig = replay(&row, &good.steps[..place], |_, bytes| vec![bytes.into()]);
            let Step::Message(bytes) = &good.steps[place] else { unreachable!() };
            let fresh = rig.trace.events.len();
            rig.feed(bytes);
            if !rig.trace.events[fresh..].iter().all(|event| matches!(event, Event::Delivery(_)))
                || rig.trace.events.len() == fresh
            {
                continue;
            }
            found += 1;
            let (session, fx) = rig.parts();
            fx.events.reserve(DELIVERIES);
            let now = model::Tick::from_millis(9);
            let before = ALLOCATIONS.get();
            for _ in 0..DELIVERIES {
                assert_eq!(session.receive(now, bytes, fx), bytes.len());
            }
            assert_eq!(ALLOCATIONS.get() - before, 0, "{name}: message {place}");
            assert_eq!(fx.events.len(), DELIVERIES, "{name}: message {place}");
        }
        assert!(found > 0, "{name}: no message is a delivery");
    }
}
