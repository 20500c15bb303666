import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * Runs main methods of Kafka's tools in one JVM, as if each had a process of its own, or guards one long-running main.
 *
 * <p>{@code Runner tools} answers calls on standard input with results on standard output. All numbers are 4-byte
 * big-endian, a blob is its length and its bytes:
 * <pre>
 * call:   id, n class names (the first that exists is run), n arguments, standard input
 * result: id, exit status, standard output, standard error
 * </pre>
 * Calls run at the same time. Each has its own thread group, by which its streams and its exit are told apart.
 *
 * <p>{@code Runner guard CLASS ARGUMENTS…} runs one main and ends the JVM when standard input ends, so that no server
 * outlives the test that started it.
 */
public final class Runner {
    private static final class Call extends ThreadGroup {
        final InputStream in;
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        final ByteArrayOutputStream err = new ByteArrayOutputStream();
        final List<Runnable> hooks = new ArrayList<>();
        final CountDownLatch done = new CountDownLatch(1);
        private int status;

        Call(int id, byte[] stdin) {
            super("call-" + id);
            in = new ByteArrayInputStream(stdin);
        }

        synchronized void finish(int exitStatus) {
            if (done.getCount() > 0) {
                status = exitStatus;
                done.countDown();
            }
        }

        static Call current() {
            ThreadGroup g = Thread.currentThread().getThreadGroup();
            while (g != null && !(g instanceof Call)) {
                g = g.getParent();
            }
            return (Call) g;
        }
    }

    private static final class Streams extends OutputStream {
        private final boolean error;
        private final OutputStream other = new FileOutputStream(FileDescriptor.err);

        Streams(boolean error) {
            this.error = error;
        }

        private OutputStream target() {
            Call c = Call.current();
            return c == null ? other : error ? c.err : c.out;
        }

        @Override public void write(int b) throws IOException {
            target().write(b);
        }

        @Override public void write(byte[] b, int from, int n) throws IOException {
            target().write(b, from, n);
        }
    }

    private static final class Input extends InputStream {
        @Override public int read() throws IOException {
            Call c = Call.current();
            return c == null ? -1 : c.in.read();
        }

        @Override public int read(byte[] b, int from, int n) throws IOException {
            Call c = Call.current();
            return c == null ? -1 : c.in.read(b, from, n);
        }
    }

    /** Ends a call as the JVM ends a process: its shutdown hooks run first. */
    private static void end(Call c, int status) {
        List<Runnable> hooks;
        synchronized (c.hooks) {
            hooks = new ArrayList<>(c.hooks);
            c.hooks.clear();
        }
        for (Runnable hook : hooks) {
            Thread t = new Thread(c, hook, "hook");
            t.setDaemon(true);
            t.start();
            try {
                t.join(10000);
            } catch (InterruptedException e) {
                break;
            }
        }
        System.out.flush();
        System.err.flush();
        c.finish(status);
    }

    /** Stands for System.exit: the calling thread never goes on. */
    private static void exit(int status, String message) {
        Call c = Call.current();
        if (c == null) {
            Runtime.getRuntime().halt(status);
        }
        end(c, status);
        while (true) {
            try {
                Thread.sleep(Long.MAX_VALUE);
            } catch (InterruptedException e) {
                // The JVM's end is the only way out.
            }
        }
    }

    private static Class<?> find(List<String> names) throws ClassNotFoundException {
        for (String name : names) {
            try {
                return Class.forName(name);
            } catch (ClassNotFoundException e) {
                // The next name is that of another version.
            }
        }
        throw new ClassNotFoundException(String.join(", ", names));
    }

    private static void run(Call call, List<String> names, List<String> args) {
        int status = 0;
        try {
            Method main = find(names).getMethod("main", String[].class);
            main.invoke(null, (Object) args.toArray(new String[0]));
        } catch (InvocationTargetException e) {
            System.err.print("Exception in thread \"main\" ");
            e.getCause().printStackTrace();
            status = 1;
        } catch (Throwable e) {
            e.printStackTrace();
            status = 127;
        }
        end(call, status);
    }

    private static byte[] blob(DataInputStream in) throws IOException {
        byte[] b = new byte[in.readInt()];
        in.readFully(b);
        return b;
    }

    private static List<String> strings(DataInputStream in) throws IOException {
        int n = in.readInt();
        List<String> out = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            out.add(new String(blob(in), "UTF-8"));
        }
        return out;
    }

    private static void answer(DataOutputStream out, int id, Call call) throws IOException {
        synchronized (out) {
            out.writeInt(id);
            out.writeInt(call.status);
            for (ByteArrayOutputStream stream : List.of(call.out, call.err)) {
                byte[] bytes = stream.toByteArray();
                out.writeInt(bytes.length);
                out.write(bytes);
            }
            out.flush();
        }
    }

    private static void serve(DataInputStream in, DataOutputStream out) throws IOException {
        while (true) {
            int id = in.readInt();
            List<String> names = strings(in);
            List<String> args = strings(in);
            Call call = new Call(id, blob(in));
            Thread main = new Thread(call, () -> run(call, names, args), "main");
            main.setDaemon(true);
            main.start();
            Thread waiter = new Thread(() -> {
                try {
                    call.done.await();
                    answer(out, id, call);
                } catch (InterruptedException | IOException e) {
                    Runtime.getRuntime().halt(1);
                }
            }, "waiter");
            waiter.setDaemon(true);
            waiter.start();
        }
    }

    /** Kafka ends processes and adds shutdown hooks through its class Exit, which moved after 4.3. */
    private static void trapExit() throws ReflectiveOperationException {
        String base = "org.apache.kafka.common.utils.";
        Class<?> exit = find(List.of(base + "Exit", base + "internals.Exit"));
        InvocationHandler ends = (proxy, method, args) -> {
            exit((Integer) args[0], (String) args[1]);
            return null;
        };
        InvocationHandler adds = (proxy, method, args) -> {
            Call c = Call.current();
            if (c != null) {
                synchronized (c.hooks) {
                    c.hooks.add((Runnable) args[1]);
                }
            }
            return null;
        };
        set(exit, "setExitProcedure", ends);
        set(exit, "setHaltProcedure", ends);
        set(exit, "setShutdownHookAdder", adds);
    }

    private static void set(Class<?> exit, String setter, InvocationHandler handler)
            throws ReflectiveOperationException {
        for (Method m : exit.getMethods()) {
            if (m.getName().equals(setter)) {
                Class<?> type = m.getParameterTypes()[0];
                m.invoke(null, Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler));
                return;
            }
        }
        throw new NoSuchMethodException(setter);
    }

    private static void tools() throws Exception {
        DataInputStream in = new DataInputStream(new FileInputStream(FileDescriptor.in));
        DataOutputStream out = new DataOutputStream(new FileOutputStream(FileDescriptor.out));
        System.setIn(new Input());
        System.setOut(new PrintStream(new Streams(false), true, "UTF-8"));
        System.setErr(new PrintStream(new Streams(true), true, "UTF-8"));
        trapExit();
        try {
            serve(in, out);
        } catch (java.io.EOFException e) {
            Runtime.getRuntime().halt(0);
        }
    }

    private static void guard(String[] args) throws Exception {
        Thread t = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    // Nothing is ever sent; the end of the stream is the message.
                }
            } catch (IOException e) {
                // As good as the end.
            }
            Runtime.getRuntime().halt(137);
        }, "guard");
        t.setDaemon(true);
        t.start();
        String[] rest = new String[args.length - 2];
        System.arraycopy(args, 2, rest, 0, rest.length);
        Class.forName(args[1]).getMethod("main", String[].class).invoke(null, (Object) rest);
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("guard")) {
            guard(args);
        } else {
            tools();
        }
    }
}
