import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.server.quota.QuotaUtils;

/** Prints how long Kafka delays connections: windows, their size in s, the rate; then time in ms, events, delay in ms. */
public class Rates {
    public static void main(String[] args) throws Exception {
        series(11, 1, 2, 1, 100, 60);
        series(11, 1, 10, 2, 40, 400);
        series(11, 1, 1, 3, 3000, 80);
        series(2, 3, 5, 4, 700, 80);
        series(1, 1, 3, 5, 300, 80);
        series(11, 1, 0, 6, 1000, 10);
        series(3, 2, 20, 7, 60, 300);
    }

    static void series(int windows, int seconds, int bound, long seed, int apart, int n) {
        Metrics metrics = new Metrics();
        Sensor sensor = metrics.sensor("s", new MetricConfig().timeWindow(seconds, TimeUnit.SECONDS).samples(windows)
            .quota(new Quota(bound, true)));
        sensor.add(metrics.metricName("rate", "g"), new Rate(), null);
        System.out.println("series " + windows + " " + seconds + " " + bound);
        Random random = new Random(seed);
        long now = 1000;
        for (int i = 0; i < n; i++) {
            now += random.nextInt(20) == 0 ? random.nextInt(30 * apart) : random.nextInt(apart);
            if (random.nextInt(10) == 0) {
                sensor.record(-1, now, false);
                System.out.println(now + " -1 0");
                continue;
            }
            long wait = 0;
            try {
                sensor.record(1, now);
            } catch (QuotaViolationException e) {
                wait = QuotaUtils.boundedThrottleTime(e, seconds * 1000L, now);
            }
            System.out.println(now + " 1 " + wait);
        }
    }
}
